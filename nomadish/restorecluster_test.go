package nomadish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// lead has a server lead.
func (f *fleet) lead(i int) {
	f.t.Helper()
	s := f.all[i]
	within(f.t, time.Minute, s.cfg.Name+" to lead", func(ctx context.Context) error {
		if s.IsLeader() {
			return nil
		}
		return errors.Join(errors.New("another leads"), s.Call(ctx, wire.MethodRaftTransfer, &structs.RaftPeerRequest{ID: s.raft.ID()}, &structs.WriteReply{}))
	})
}

// equal waits until the servers that run have one state, which must be in order, and gives its index.
func (f *fleet) equal() (index uint64) {
	f.t.Helper()
	within(f.t, time.Minute, "equal states", func(ctx context.Context) error {
		var first *structs.CheckReport
		for _, s := range f.up() {
			reply := &structs.CheckReply{}
			if err := s.Call(ctx, wire.MethodCheck, &structs.CheckRequest{QueryOptions: structs.QueryOptions{AllowStale: true}}, reply); err != nil {
				return err
			}
			r := reply.Report
			if !r.Healthy() {
				f.t.Fatalf("the state of %s is not in order: %+v", r.Server, r.Faults)
			}
			if first == nil {
				first = r
			}
			if r.StateIndex != first.StateIndex {
				return fmt.Errorf("%s is at index %d, %s at %d", first.Server, first.StateIndex, r.Server, r.StateIndex)
			}
			if r.Hash != first.Hash {
				f.t.Fatalf("at index %d %s and %s have other states", r.StateIndex, first.Server, r.Server)
			}
		}
		index = first.StateIndex
		return nil
	})
	return index
}

// followersDecide has the followers decide only, if the first server leads, and nodes that say nothing stay ready.
func followersDecide(i int, c *Config) {
	c.NumSchedulers = min(i, 1)
	c.Heartbeats.MinTTL, c.Heartbeats.Failover = 10*time.Minute, 10*time.Minute
}

// littleJob is one of which a node holds hundreds.
func littleJob(id string) *structs.Job {
	job := batchJob(id, 1)
	job.TaskGroups[0].Tasks[0].Resources = &structs.Resources{CPU: 1, MemoryMB: 10}
	return job
}

// saveBusy saves the state of three servers while jobs are registered with each, and ends them. It gives what was
// acknowledged before the saving, all of which must be in the archive.
func saveBusy(t *testing.T) (archive []byte, acked []string) {
	t.Helper()
	f := newFleet(t, 3, followersDecide)
	for i := range 3 {
		if err := f.all[i].Call(t.Context(), wire.MethodNodeRegister, &structs.NodeRegisterRequest{Node: node(i)}, &structs.NodeUpdateReply{}); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	var load sync.WaitGroup
	stop := make(chan struct{})
	for i, s := range f.all {
		load.Go(func() {
			for n := range 700 { // more would not fit on the nodes
				select {
				case <-stop:
					return
				default:
				}
				id := fmt.Sprintf("busy-%d-%d", i, n)
				if _, err := register(t.Context(), s, littleJob(id)); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				acked = append(acked, id)
				mu.Unlock()
			}
		})
	}
	more := func(than int) (now []string) {
		within(t, time.Minute, "jobs being registered", func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			if now = slices.Clone(acked); len(now) <= than {
				return fmt.Errorf("%d are", len(now))
			}
			return nil
		})
		return now
	}
	before := more(30)
	archive = save(t, f.all[f.follower()])
	more(len(before))
	close(stop)
	load.Wait()
	for i := range f.all {
		f.crash(i)
	}
	return archive, before
}

// queries are how many blocking queries wait in this process.
func queries() int {
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, 2); err != nil {
		return 0
	}
	n := 0
	for one := range strings.SplitSeq(b.String(), "\n\n") {
		if strings.Contains(one, "rpc.(*Router).Query(") && strings.Contains(one, "(*WatchSet).Wait(") {
			n++
		}
	}
	return n
}

// A busy cluster's state, restored into another of three servers that has a state of its own, is that of all three. Who
// waits at a follower wakes, followers decide by it, and one that is started again has it still.
func TestRestoreIntoThreeServers(t *testing.T) { // not beside others: it counts the blocking queries of the process
	archive, acked := saveBusy(t)
	f := newFleet(t, 3, followersDecide)
	f.lead(0)
	reply, err := register(t.Context(), f.all[1], batchJob("forgotten", 1))
	if err != nil {
		t.Fatal(err)
	}
	evalDone(t, f.all[2], reply.EvalID)
	before := f.equal()

	list, woken := &structs.JobListReply{}, make(chan error, 1)
	go func() { // it asks a follower for what that has itself; without a restore it would wait for as long as the test may
		opts := structs.QueryOptions{AllowStale: true, MinQueryIndex: before, MaxQueryTime: 10 * time.Minute}
		woken <- f.all[1].Call(t.Context(), wire.MethodJobList, &structs.ListRequest{QueryOptions: opts}, list)
	}()
	within(t, time.Minute, "the query to wait", func(context.Context) error {
		if n := queries(); n != 1 {
			return fmt.Errorf("%d do", n)
		}
		return nil
	})
	restored, err := restore(t.Context(), f.all[2], archive)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-woken:
		if err != nil || list.Index < restored.Index || restored.Index <= before {
			t.Errorf("who waited at index %d was told of index %d, restored at %d: %v", before, list.Index, restored.Index, err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("who waited at a follower was not told")
	}
	known := map[string]bool{}
	for _, j := range list.Jobs {
		known[j.ID] = true
	}
	if gone := slices.DeleteFunc(slices.Clone(acked), func(id string) bool { return known[id] }); len(gone) > 0 || known["forgotten"] {
		t.Errorf("of what was acknowledged before it was saved %d are gone; what was not saved is known: %t", len(gone), known["forgotten"])
	}
	if now := f.equal(); now < restored.Index {
		t.Errorf("all are at index %d, restored at %d", now, restored.Index)
	}
	f.goesOn(restored.Index)
	if ids := jobIDs(t, f.all[2], true); !slices.Contains(ids, "next") || !slices.Contains(ids, acked[0]) || slices.Contains(ids, "forgotten") {
		t.Errorf("the one that was started again knows %d jobs: %v", len(ids), ids)
	}
}

// goesOn sees that three servers decide after a restore, and that one of them that is started again is as the others.
func (f *fleet) goesOn(restored uint64) {
	f.t.Helper()
	reply, err := register(f.t.Context(), f.all[1], littleJob("next"))
	if err != nil {
		f.t.Fatal(err)
	}
	if ev := evalDone(f.t, f.all[2], reply.EvalID); ev.Status != structs.EvalStatusComplete || len(ev.FailedTGAllocs) > 0 {
		f.t.Fatalf("the evaluation: %+v", ev)
	}
	f.equal()
	f.crash(2)
	if _, err = register(f.t.Context(), f.all[1], littleJob("meanwhile")); err != nil {
		f.t.Fatal(err)
	}
	f.run(2)
	f.formed(3)
	if now := f.equal(); now <= restored {
		f.t.Errorf("after a restart all are at index %d, restored at %d", now, restored)
	}
}
