package client

import (
	"context"
	"fmt"
	"maps"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// fakeServer speaks the few methods that a client needs of a server, on loopback.
type fakeServer struct {
	t    *testing.T
	addr string
	stop context.CancelFunc
	wg   sync.WaitGroup
	ln   net.Listener
	tls  *wire.TLS // nil: plain

	mu         sync.Mutex
	index      uint64
	nodes      map[string]*structs.Node
	sessions   map[string]*wire.Session
	allocs     map[string]*structs.Allocation
	byNode     map[string][]string // allocations' IDs
	jobs       map[string]*structs.Job
	changed    chan struct{} // closed and replaced at every change
	beats      map[string]int
	refuse     bool                                   // reports are refused
	unwanted   func(*structs.AllocClientUpdate) error // why a report with such a thing is refused; nil: none is
	unfit      func(*structs.Node) error              // why a node is not taken in; nil: all are
	refusals   int
	reported   map[string]string // what a node last called itself
	registered map[string]int    // how often
	ttl        time.Duration
	reports    int // how many came
	events     map[string][]*structs.NodeEvent
	turned     int                 // connections that came to nothing
	history    map[string][]string // client statuses of an allocation, as they came
}

func newFakeServer(t *testing.T) *fakeServer {
	t.Helper()
	return newFakeServerAs(t, nil)
}

// newFakeServerAs is one that shows a certificate.
func newFakeServerAs(t *testing.T, secure *wire.TLS) *fakeServer {
	t.Helper()
	s := &fakeServer{
		t: t, tls: secure, index: 10, nodes: map[string]*structs.Node{}, sessions: map[string]*wire.Session{},
		allocs: map[string]*structs.Allocation{}, jobs: map[string]*structs.Job{}, byNode: map[string][]string{}, changed: make(chan struct{}),
		beats: map[string]int{}, ttl: 200 * time.Millisecond, history: map[string][]string{}, events: map[string][]*structs.NodeEvent{}, reported: map[string]string{}, registered: map[string]int{},
	}
	s.listen("127.0.0.1:0")
	t.Cleanup(s.close)
	return s
}

func (s *fakeServer) listen(addr string) {
	s.t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.ln, s.addr = ln, ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	m := wire.NewMux(hclog.NewNullLogger(), 0)
	m.Handle(wire.MethodNodeRegister, wire.Unary(s.register))
	m.Handle(wire.MethodPing, wire.Unary(func(context.Context, *structs.EmptyRequest) (*structs.WriteReply, error) {
		return &structs.WriteReply{}, nil
	}))
	m.Handle(wire.MethodNodeHeartbeat, wire.Unary(s.heartbeat))
	m.Handle(wire.MethodNodeClientAllocs, wire.Unary(s.clientAllocs))
	m.Handle(wire.MethodNodeUpdateAllocs, wire.Unary(s.updateAllocs))
	m.Bound(wire.MethodNodeUpdateAllocs, 1<<20, "")
	m.Handle(wire.MethodNodeEvents, wire.Unary(func(_ context.Context, req *structs.NodeEventsRequest) (*structs.WriteReply, error) {
		s.change(func() { s.events[req.NodeID] = append(s.events[req.NodeID], req.Events...) })
		return &structs.WriteReply{}, nil
	}))
	m.Handle(wire.MethodClientHello, func(_ context.Context, call *wire.Call) error {
		var req structs.NodeRequest
		if err := call.Args(&req); err != nil {
			return err
		}
		s.change(func() { s.sessions[req.NodeID] = call.Session })
		return call.Send(&structs.WriteReply{})
	})
	s.wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			s.wg.Go(func() {
				conn, err := s.accept(ctx, conn)
				if err != nil {
					return
				}
				if session, err := wire.Server(conn, wire.Config{}); err == nil {
					m.Serve(ctx, session)
				}
			})
		}
	})
}

func (s *fakeServer) accept(ctx context.Context, raw net.Conn) (net.Conn, error) {
	conn, err := s.tls.Accept(ctx, raw, 2*time.Minute)
	if err != nil {
		_ = raw.Close()
		s.change(func() { s.turned++ })
		return nil, err
	}
	return conn, nil
}

func (s *fakeServer) close() {
	s.stop()
	_ = s.ln.Close()
	s.wg.Wait()
}

// change changes the state and wakes all who wait.
func (s *fakeServer) change(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index++
	fn()
	close(s.changed)
	s.changed = make(chan struct{})
}

// until waits for a condition on the state.
func (s *fakeServer) until(what string, ok func() bool) {
	s.t.Helper()
	deadline := time.After(3 * time.Minute)
	for {
		s.mu.Lock()
		done, changed := ok(), s.changed
		s.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			s.mu.Lock()
			defer s.mu.Unlock()
			for id, a := range s.allocs {
				s.t.Logf("alloc %s: %s %q; %s", id, a.ClientStatus, a.ClientDescription, s.history[id])
				for name, ts := range a.TaskStates {
					for _, e := range ts.Events {
						s.t.Logf("  %s %s: %s", name, e.Type, e.DisplayMessage)
					}
				}
			}
			s.t.Fatalf("waited too long for: %s", what)
		}
	}
}

func (s *fakeServer) register(_ context.Context, req *structs.NodeRegisterRequest) (*structs.NodeUpdateReply, error) {
	var err error
	s.change(func() {
		if s.unfit != nil {
			err = s.unfit(req.Node)
		}
		if err != nil {
			s.refusals++
			return
		}
		s.nodes[req.Node.ID] = req.Node
		s.reported[req.Node.ID] = req.Node.Status
		s.registered[req.Node.ID]++
	})
	if err != nil {
		return nil, err
	}
	return &structs.NodeUpdateReply{HeartbeatTTL: s.ttl, Registered: true, Servers: []string{s.addr}}, nil
}

func (s *fakeServer) heartbeat(_ context.Context, req *structs.NodeHeartbeatRequest) (*structs.NodeUpdateReply, error) {
	known := false
	s.change(func() { _, known = s.nodes[req.NodeID]; s.beats[req.NodeID]++; s.reported[req.NodeID] = req.Status })
	return &structs.NodeUpdateReply{HeartbeatTTL: s.ttl, Registered: known, Servers: []string{s.addr}}, nil
}

func (s *fakeServer) clientAllocs(ctx context.Context, req *structs.ClientAllocsRequest) (*structs.ClientAllocsReply, error) {
	timeout := time.After(req.MaxQueryTime)
	for {
		reply := &structs.ClientAllocsReply{Allocs: map[string]uint64{}}
		s.mu.Lock()
		changed := s.changed
		reply.Index = 1
		for _, id := range s.byNode[req.NodeID] {
			a := s.allocs[id]
			if a == nil {
				continue // forgotten
			}
			reply.Allocs[a.ID] = a.AllocModifyIndex
			reply.Index = max(reply.Index, a.AllocModifyIndex)
			if a.AllocModifyIndex > req.MinQueryIndex {
				bare := a.Copy()
				bare.Job = nil
				reply.Changed = append(reply.Changed, bare)
				reply.Jobs = append(reply.Jobs, s.jobs[a.JobID])
			}
		}
		s.mu.Unlock()
		if reply.Index > req.MinQueryIndex {
			return reply, nil
		}
		select {
		case <-changed:
		case <-timeout:
			return reply, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *fakeServer) updateAllocs(_ context.Context, req *structs.ClientUpdateRequest) (*structs.WriteReply, error) {
	var err error
	s.change(func() {
		if s.refuse {
			err = structs.Errorf(structs.CodeNoLeader, "no leader")
			return
		}
		s.reports++
		for _, u := range req.Updates {
			if s.unwanted != nil && err == nil {
				err = s.unwanted(u)
			}
		}
		if err != nil {
			return
		}
		for _, u := range req.Updates {
			a := s.allocs[u.ID]
			if a == nil {
				continue
			}
			c := a.Copy()
			c.ClientStatus, c.ClientDescription, c.TaskStates = u.ClientStatus, u.ClientDescription, u.TaskStates
			c.DeploymentStatus = u.DeploymentStatus
			s.allocs[u.ID] = c
			s.history[u.ID] = append(s.history[u.ID], u.ClientStatus)
		}
	})
	return &structs.WriteReply{}, err
}

// place assigns a node an allocation of a job.
func (s *fakeServer) place(nodeID string, job *structs.Job, n int, edit func(*structs.Allocation)) *structs.Allocation {
	var a *structs.Allocation
	s.change(func() { a = s.add(nodeID, job, n, edit) })
	return a
}

// add is place within a change.
func (s *fakeServer) add(nodeID string, job *structs.Job, n int, edit func(*structs.Allocation)) *structs.Allocation {
	g := job.TaskGroups[0]
	a := &structs.Allocation{
		ID: structs.DeriveID(job.ID, uint64(n)), Namespace: "default", NodeID: nodeID, JobID: job.ID, Job: job, TaskGroup: g.Name, // small
		Name: structs.AllocName(job.ID, g.Name, n), DesiredStatus: structs.AllocDesiredRun, ClientStatus: structs.AllocClientPending,
		AllocatedResources: &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{}},
	}
	for _, t := range g.Tasks {
		a.AllocatedResources.Tasks[t.Name] = &structs.AllocatedTaskResources{
			Cpu: structs.AllocatedCpuResources{CpuShares: 100}, Memory: structs.AllocatedMemoryResources{MemoryMB: 64},
		}
	}
	if edit != nil {
		edit(a)
	}
	a.AllocModifyIndex, a.CreateIndex = s.index, s.index
	s.jobs[job.ID] = job
	s.allocs[a.ID] = a
	s.byNode[nodeID] = append(s.byNode[nodeID], a.ID)
	return a
}

// untilAll waits until every allocation has a status.
func (s *fakeServer) untilAll(status string) {
	s.t.Helper()
	left := map[string]bool{}
	s.mu.Lock()
	for id := range s.allocs {
		left[id] = true
	}
	s.mu.Unlock()
	s.until("all allocations are "+status, func() bool {
		for id := range left {
			if s.allocs[id].ClientStatus != status {
				return false // the rest is looked at later
			}
			delete(left, id)
		}
		return true
	})
}

// edit changes an allocation as the servers do.
func (s *fakeServer) edit(id string, fn func(*structs.Allocation)) {
	s.change(func() {
		c := s.allocs[id].Copy()
		fn(c)
		c.AllocModifyIndex = s.index
		s.allocs[id] = c
	})
}

func (s *fakeServer) untilStatus(id, status string) {
	s.t.Helper()
	s.until(fmt.Sprintf("allocation %s is %s", id, status), func() bool { return s.allocs[id].ClientStatus == status })
}

func (s *fakeServer) alloc(id string) *structs.Allocation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.allocs[id].Copy()
}

func (s *fakeServer) eventTypes(id, task string) []string {
	var out []string
	if ts := s.alloc(id).TaskStates[task]; ts != nil {
		for _, e := range ts.Events {
			out = append(out, e.Type)
		}
	}
	return out
}

func (s *fakeServer) status(nodeID string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reported[nodeID]
}

func (s *fakeServer) registrations(nodeID string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.registered[nodeID]
}

// call calls a method of the client that has the node.
func (s *fakeServer) call(nodeID, method string, args, reply any) error {
	s.mu.Lock()
	session := maps.Clone(s.sessions)[nodeID]
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return session.Call(ctx, method, args, reply)
}
