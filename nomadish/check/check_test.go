package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// site is a state under test. Entries have the index's second as their time.
type site struct {
	*testcluster.Log
	t     testing.TB
	store *state.Store
}

func newSite(t testing.TB) *site {
	l := testcluster.New(0, state.Options{})
	return &site{l, t, l.Store}
}

func (s *site) now() int64 { return int64(s.Index()+1) * 1e9 } // small

func (s *site) must(entry any) {
	s.t.Helper()
	s.Put(s.t, entry)
}

func testNode(id string) *structs.Node {
	n := &structs.Node{
		ID: id, Name: id, Datacenter: "dc1", NodePool: "default", Status: structs.NodeStatusReady, SecretID: "s",
		NodeResources: &structs.NodeResources{
			Cpu:    structs.NodeCpuResources{CpuShares: 4000, TotalCpuCores: 4, ReservableCpuCores: []uint16{0, 1, 2, 3}},
			Memory: structs.NodeMemoryResources{MemoryMB: 4000}, Disk: structs.NodeDiskResources{DiskMB: 4000},
			MinDynamicPort: 20000, MaxDynamicPort: 32000,
			Devices: []*structs.NodeDeviceResource{{Vendor: "nvidia", Type: "gpu", Name: "h", Instances: []*structs.NodeDevice{
				{ID: "gpu-0", Healthy: true}, {ID: "gpu-1", Healthy: true},
			}}},
		},
		ReservedResources: &structs.NodeReservedResources{
			Cpu: structs.NodeReservedCpuResources{ReservedCpuCores: []uint16{3}}, Memory: structs.NodeMemoryResources{MemoryMB: 1000},
			Networks: structs.NodeReservedNetworkResources{ReservedHostPorts: "22, 8500-8600"},
		},
	}
	return n
}

func testJob(id string, count int) *structs.Job {
	return &structs.Job{
		ID: id, Name: id, Namespace: "default", Type: structs.JobTypeService, Priority: 50, NodePool: "default", Datacenters: []string{"*"},
		TaskGroups: []*structs.TaskGroup{{Name: "g", Count: count, Tasks: []*structs.Task{{Name: "t", Driver: "mock", KillTimeout: 5 * time.Second}}}},
	}
}

// testBatch places n instances on a node, the first with the number first.
func testBatch(s *site, job, node string, first, n int) *structs.PlacementBatch {
	b := &structs.PlacementBatch{
		Namespace: "default", JobID: job, Group: "g", EvalID: "e-" + job, Seed: fmt.Sprint(job, "/", s.Index()), CreateTime: s.now(),
		Nodes: []structs.PlacedNode{{ID: node, Name: node}},
		Resources: &structs.AllocatedResources{
			Tasks: map[string]*structs.AllocatedTaskResources{"t": {
				Cpu: structs.AllocatedCpuResources{CpuShares: 100}, Memory: structs.AllocatedMemoryResources{MemoryMB: 100},
			}},
			Shared: structs.AllocatedSharedResources{DiskMB: 10},
		},
	}
	for i := range n {
		b.Instances = append(b.Instances, structs.Instance{Ordinal: uint32(i), Index: first + i}) // small
	}
	return b
}

func (s *site) plan(p *structs.JudgedPlan) {
	s.t.Helper()
	p.Time = s.now()
	s.must(&structs.PlanCommit{Plans: []*structs.JudgedPlan{p}})
}

// place commits a batch, changed by f.
func (s *site) place(job, node string, first, n int, f func(*structs.PlacementBatch)) (ids []string) {
	s.t.Helper()
	b := testBatch(s, job, node, first, n)
	if f != nil {
		f(b)
	}
	s.plan(&structs.JudgedPlan{EvalID: b.EvalID, Place: []*structs.PlacementBatch{b}})
	for i := range n {
		ids = append(ids, structs.DeriveID(b.Seed, uint64(i))) // small
	}
	return ids
}

func (s *site) report(status string, ids ...string) {
	s.t.Helper()
	e := &structs.AllocClientEntry{Time: s.now()}
	for _, id := range ids {
		e.Updates = append(e.Updates, &structs.AllocClientUpdate{ID: id, ClientStatus: status, ModifyTime: s.now()})
	}
	s.must(e)
}

func (s *site) eval(id, job, status string, queued int) {
	s.t.Helper()
	s.must(&structs.EvalUpsertEntry{Time: s.now(), Evals: []*structs.Evaluation{{
		ID: id, Namespace: "default", JobID: job, Type: structs.JobTypeService, Status: status, TriggeredBy: structs.EvalTriggerQueuedAllocs,
		QueuedAllocations: map[string]int{"g": queued}, CreateTime: s.now(), ModifyTime: s.now(),
	}}})
}

func (s *site) job(id string, count int, f func(*structs.Job)) {
	s.t.Helper()
	j := testJob(id, count)
	if f != nil {
		f(j)
	}
	s.must(&structs.JobRegisterEntry{Job: j, Time: s.now()})
}

// busy is a healthy state with something of everything: running and ended work, a gang,
// devices in shares, something suspended, something that waits with room reserved, a node
// that is down, one that is drained, a job that is stopped.
func busy(t testing.TB) *site {
	s := newSite(t)
	for _, id := range []string{"a", "b", "c", "d"} {
		s.must(&structs.NodeRegisterEntry{Node: testNode(id), Time: s.now(), EvalSeed: "register " + id})
	}
	s.job("web", 3, nil)
	web := s.place("web", "a", 0, 3, func(b *structs.PlacementBatch) {
		for i := range b.Instances {
			b.Instances[i].Ports = []structs.PortMapping{{Label: "http", Value: 20000 + i}}
		}
		b.Instances[0].Cores, b.Instances[0].CoreMHz = map[string][]uint16{"t": {0}}, map[string]int64{"t": 1000}
		b.Instances[1].Devices = gpu("gpu-0", 300)
		b.Instances[2].Devices = gpu("gpu-0", 700)
	})
	s.report(structs.AllocClientRunning, web...)
	s.job("gang", 2, func(j *structs.Job) { j.TaskGroups[0].Gang = &structs.Gang{} })
	s.report(structs.AllocClientRunning, s.place("gang", "b", 0, 2, nil)...)
	s.job("batch", 2, func(j *structs.Job) { j.Type = structs.JobTypeBatch })
	batch := s.place("batch", "b", 0, 2, nil)
	s.report(structs.AllocClientComplete, batch[0])
	s.job("old", 1, nil)
	old := s.place("old", "c", 0, 1, nil)
	s.report(structs.AllocClientRunning, old...)
	s.must(&structs.JobDeregisterEntry{Namespace: "default", JobID: "old", Time: s.now()})
	s.plan(&structs.JudgedPlan{EvalID: "stop", Stop: []*structs.AllocStop{{AllocID: old[0]}}})
	s.job("frozen", 1, nil)
	suspended := s.place("frozen", "c", 0, 1, func(b *structs.PlacementBatch) { b.Resources.Tasks["t"].Cpu.CpuShares = 3000 })
	s.plan(&structs.JudgedPlan{EvalID: "freeze", Stop: []*structs.AllocStop{{
		AllocID: suspended[0], DesiredStatus: structs.AllocDesiredSuspend, Reclaim: structs.ReclaimSuspend,
	}}})
	s.eval("thaw", "frozen", structs.EvalStatusBlocked, 1)
	s.job("urgent", 1, nil)
	s.place("urgent", "c", 0, 1, func(b *structs.PlacementBatch) { b.Resources.Tasks["t"].Cpu.CpuShares = 2000 })
	s.job("large", 2, nil)
	s.eval("waits", "large", structs.EvalStatusBlocked, 2)
	s.plan(&structs.JudgedPlan{
		EvalID: "large", Requests: []*structs.RequestUpdate{{Namespace: "default", JobID: "large", Group: "g", Missing: 2, Since: 1, EvalID: "waits"}},
		Reserve: []*structs.Reservation{{NodeID: "a", Namespace: "default", JobID: "large", Group: "g", CPU: 500, MadeAt: 1, ExpiresAt: 3600e9}},
	})
	s.must(&structs.NodeStatusEntry{NodeIDs: []string{"d"}, Status: structs.NodeStatusDown, Time: s.now(), EvalSeed: "down"})
	s.must(&structs.NodeDrainEntry{NodeID: "b", Strategy: &structs.DrainStrategy{}, Time: s.now(), EvalSeed: "drain"})
	return s
}

func gpu(id string, share int) map[string][]*structs.AllocatedDeviceResource {
	return map[string][]*structs.AllocatedDeviceResource{"t": {{Vendor: "nvidia", Type: "gpu", Name: "h", DeviceIDs: []string{id}, Share: share}}}
}

func (s *site) check(o Options) *structs.CheckReport {
	s.t.Helper()
	r, err := Run(context.Background(), s.store.Snapshot(), o)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func TestHealthyBusyStateHasNoFindings(t *testing.T) {
	s := busy(t)
	for _, o := range []Options{{}, {Now: time.Unix(0, s.now()), FixedNodes: true}} {
		r := s.check(o)
		if len(r.Faults)+len(r.Notes)+len(r.Found) > 0 {
			t.Errorf("findings: %+v %+v", r.Faults, r.Notes)
		}
		if r.StateIndex != s.Index() || r.Rows[state.TableAllocs] != 10 || r.Rows[state.TableNodes] != 4 || !r.Healthy() {
			t.Errorf("report: %+v", r)
		}
	}
}

// What an earlier job of an ID ran, which was purged, is not in the summary of the one that is registered now.
func TestEarlierJobOfAnID(t *testing.T) {
	s := newSite(t)
	s.must(&structs.NodeRegisterEntry{Node: testNode("a"), Time: s.now(), EvalSeed: "register a"})
	s.job("web", 1, nil)
	s.report(structs.AllocClientComplete, s.place("web", "a", 0, 1, nil)...)
	s.must(&structs.JobDeregisterEntry{Namespace: "default", JobID: "web", Purge: true, Time: s.now()})
	s.job("web", 1, nil)
	s.place("web", "a", 0, 1, nil)
	if r := s.check(Options{}); len(r.Faults) > 0 {
		t.Errorf("faults: %+v", r.Faults)
	}
}

// A member of a batch job's gang that is to be stopped and has ended well by itself has done its part; one that was killed has
// not. And what an older version of the job placed is not judged by what the newer one needs, while that is decided.
func TestGangsThatAreWell(t *testing.T) {
	ended := func(killed bool) int {
		s := busy(t)
		s.job("x", 2, func(j *structs.Job) { j.Type, j.TaskGroups[0].Gang = structs.JobTypeBatch, &structs.Gang{} })
		ids := s.place("x", "a", 0, 2, nil)
		s.plan(&structs.JudgedPlan{Stop: []*structs.AllocStop{{AllocID: ids[0], DesiredStatus: structs.AllocDesiredEvict}}})
		task := &structs.TaskState{State: structs.TaskStateDead}
		if killed {
			task.Events = []*structs.TaskEvent{{Type: structs.TaskKilled}}
		}
		s.must(&structs.AllocClientEntry{Time: s.now(), Updates: []*structs.AllocClientUpdate{{
			ID: ids[0], ClientStatus: structs.AllocClientComplete, TaskStates: map[string]*structs.TaskState{"t": task}, ModifyTime: s.now(),
		}}})
		for _, e := range s.store.Snapshot().EvalsByJob(nil, "default", "x") {
			s.eval(e.ID, "x", structs.EvalStatusComplete, 0)
		}
		return len(s.check(Options{}).Faults)
	}
	if n := ended(false); n != 0 {
		t.Errorf("%d faults of a gang of which one has done its part", n)
	}
	if n := ended(true); n != 1 {
		t.Errorf("%d faults of a gang of which one was killed, want 1", n)
	}
	s := busy(t)
	gang := func(j *structs.Job) { j.TaskGroups[0].Gang = &structs.Gang{} }
	s.job("x", 1, gang)
	s.job("x", 4, gang)
	s.eval("x", "x", structs.EvalStatusPending, 0)
	old := s.store.Snapshot().Job(nil, "default", "x").Version - 1
	s.place("x", "a", 0, 1, func(b *structs.PlacementBatch) { b.JobVersion = old })
	if r := s.check(Options{}); len(r.Faults) != 0 {
		t.Errorf("faults of a gang that an older version placed: %+v", r.Faults)
	}
}

// Each row breaks one invariant of a healthy state; what is found names it.
func TestBrokenOnPurpose(t *testing.T) {
	soon := func(s *site) Options { return Options{Now: time.Unix(0, s.now())} }
	later := func(s *site) Options { return Options{Now: time.Unix(0, s.now()).Add(time.Hour)} }
	for _, x := range []struct {
		name, rule, what string
		opts             func(*site) Options
		wreck            func(*site)
	}{
		{"processor", structs.CheckRoom, "4100 MHz of processor, but the node has 3000", soon, func(s *site) {
			s.job("x", 41, nil)
			s.place("x", "d", 0, 41, func(b *structs.PlacementBatch) {
				b.Resources.Tasks["t"].Memory.MemoryMB, b.Nodes[0].ID = 1, "c2"
			})
		}},
		{"memory", structs.CheckRoom, "3100 MiB of memory, but the node has 3000", soon, func(s *site) {
			s.job("x", 31, nil)
			s.place("x", "c2", 0, 31, func(b *structs.PlacementBatch) { b.Resources.Tasks["t"].Cpu.CpuShares = 1 })
		}},
		{"disk", structs.CheckRoom, "5000 MiB of disk, but the node has 4000", soon, func(s *site) {
			s.job("x", 1, nil)
			s.place("x", "c2", 0, 1, func(b *structs.PlacementBatch) { b.Resources.Shared.DiskMB = 5000 })
		}},
		{"memory of what is suspended", structs.CheckRoom, "3001 MiB of memory", soon, func(s *site) {
			s.job("x", 2, nil)
			ids := s.place("x", "c2", 0, 1, nil)
			s.plan(&structs.JudgedPlan{Stop: []*structs.AllocStop{{AllocID: ids[0], DesiredStatus: structs.AllocDesiredSuspend}}})
			s.place("x", "c2", 1, 1, func(b *structs.PlacementBatch) { b.Resources.Tasks["t"].Memory.MemoryMB = 2901 })
			s.eval("x", "x", structs.EvalStatusBlocked, 1)
		}},
		{"one core twice", structs.CheckCores, "core 1 is owned by allocation", soon, func(s *site) {
			s.job("x", 2, nil)
			s.place("x", "c2", 0, 2, func(b *structs.PlacementBatch) {
				b.Instances[0].Cores, b.Instances[1].Cores = map[string][]uint16{"t": {1, 2}}, map[string][]uint16{"t": {1}}
			})
		}},
		{"a core that the node keeps", structs.CheckCores, "owns core 3, which is not for tasks", soon, func(s *site) {
			s.job("x", 1, nil)
			s.place("x", "c2", 0, 1, func(b *structs.PlacementBatch) { b.Instances[0].Cores = map[string][]uint16{"t": {3}} })
		}},
		{"a port on all addresses and on one", structs.CheckPorts, "port 21000 is assigned to allocation", soon, func(s *site) {
			s.job("x", 2, nil)
			s.place("x", "c2", 0, 2, func(b *structs.PlacementBatch) {
				b.Instances[0].Ports = []structs.PortMapping{{Label: "p", Value: 21000, HostIP: "10.0.0.1"}, {Label: "q", Value: 21001, HostIP: "10.0.0.1"}}
				b.Instances[1].Ports = []structs.PortMapping{{Label: "p", Value: 21000}, {Label: "q", Value: 21001, HostIP: "10.0.0.2"}}
			})
		}},
		{"a port that the node keeps", structs.CheckPorts, "has port 8555, which the node keeps", soon, func(s *site) {
			s.job("x", 1, nil)
			s.place("x", "c2", 0, 1, func(b *structs.PlacementBatch) {
				b.Instances[0].Networks = []*structs.NetworkResource{{ReservedPorts: []structs.Port{{Label: "p", Value: 8555}}}}
			})
		}},
		{"a GPU twice", structs.CheckDevices, "device gpu-1 is used to 2000 thousandths", soon, func(s *site) {
			s.job("x", 2, nil)
			s.place("x", "c2", 0, 2, func(b *structs.PlacementBatch) {
				b.Instances[0].Devices, b.Instances[1].Devices = gpu("gpu-1", 0), gpu("gpu-1", 0)
			})
		}},
		{"more shares than a whole GPU", structs.CheckDevices, "device gpu-1 is used to 1001 thousandths", soon, func(s *site) {
			s.job("x", 2, nil)
			s.place("x", "c2", 0, 2, func(b *structs.PlacementBatch) {
				b.Instances[0].Devices, b.Instances[1].Devices = gpu("gpu-1", 500), gpu("gpu-1", 501)
			})
		}},
		{"a GPU that is not there", structs.CheckDevices, "has device gpu-7, which the node does not have", soon, func(s *site) {
			s.job("x", 1, nil)
			s.place("x", "c2", 0, 1, func(b *structs.PlacementBatch) { b.Instances[0].Devices = gpu("gpu-7", 0) })
		}},
		{"half a gang, though it is still decided", structs.CheckGangs, "was placed with 3 of the 4 members", soon, func(s *site) {
			s.job("x", 4, func(j *structs.Job) { j.TaskGroups[0].Gang = &structs.Gang{} })
			s.place("x", "c2", 0, 3, nil)
			s.eval("x", "x", structs.EvalStatusPending, 0)
		}},
		{"a gang of two groups with one of them", structs.CheckGangs, `of gang "g, h", group "h" has 0 of the 1`, soon, func(s *site) {
			s.job("x", 2, func(j *structs.Job) {
				j.TaskGroups[0].Gang = &structs.Gang{Groups: []string{"h"}}
				j.TaskGroups = append(j.TaskGroups, &structs.TaskGroup{Name: "h", Count: 1, Tasks: j.TaskGroups[0].Tasks})
			})
			s.place("x", "c2", 0, 2, nil)
		}},
		{"a gang that lost a member, and nobody minds", structs.CheckGangs, "has 1 of the 2 members", soon, func(s *site) {
			s.job("x", 2, func(j *structs.Job) { j.TaskGroups[0].Gang = &structs.Gang{OnLoss: structs.GangOnLossMember} })
			s.report(structs.AllocClientFailed, s.place("x", "c2", 0, 2, nil)[0])
		}},
		{"stopped, and still running", structs.CheckStopped, "it was to stop 1h", later, func(s *site) {
			s.job("x", 1, nil)
			ids := s.place("x", "c2", 0, 1, nil)
			s.report(structs.AllocClientRunning, ids...)
			s.must(&structs.JobDeregisterEntry{Namespace: "default", JobID: "x", Time: s.now()})
			s.plan(&structs.JudgedPlan{Stop: []*structs.AllocStop{{AllocID: ids[0]}}})
		}},
		{"work of no job", structs.CheckOrphans, "there is no such job, 1 allocations", soon, func(s *site) { s.place("nobody", "c2", 0, 1, nil) }},
		{"work on a node that is down", structs.CheckOrphans, "which is down, and no evaluation", soon, func(s *site) {
			s.job("x", 1, nil)
			s.place("x", "c2", 0, 1, nil)
			s.must(&structs.NodeStatusEntry{NodeIDs: []string{"c2"}, Status: structs.NodeStatusDown, Time: s.now(), EvalSeed: "x"})
			for _, e := range s.store.Snapshot().EvalsByJob(nil, "default", "x") {
				s.eval(e.ID, "x", structs.EvalStatusComplete, 0)
			}
		}},
		{"one too many", structs.CheckSurplus, "has 3 instances that are to run, 2 are requested", soon, func(s *site) {
			s.job("x", 2, nil)
			s.place("x", "c2", 0, 3, nil)
		}},
		{"an instance twice", structs.CheckSurplus, "x.g[1] of job default/x, which another allocation is as well", soon, func(s *site) {
			s.job("x", 3, nil)
			s.place("x", "c2", 0, 2, nil)
			s.place("x", "c2", 1, 1, nil)
		}},
		{"a system job's instance twice on a node", structs.CheckSurplus, "x.g[0] on node c2, as is allocation", soon, func(s *site) {
			s.job("x", 1, func(j *structs.Job) { j.Type = structs.JobTypeSystem })
			s.place("x", "c2", 0, 1, nil)
			s.place("x", "c2", 0, 1, nil)
		}},
		{"a group that is not asked for", structs.CheckSurplus, `no group "g" any more`, soon, func(s *site) {
			s.job("x", 1, func(j *structs.Job) { j.TaskGroups[0].Name = "other" })
			s.place("x", "c2", 0, 1, nil)
		}},
		{"a stopped job's work", structs.CheckSurplus, "it is stopped, 1 allocations", soon, func(s *site) {
			s.job("x", 1, nil)
			s.place("x", "c2", 0, 1, nil)
			s.must(&structs.JobDeregisterEntry{Namespace: "default", JobID: "x", Time: s.now()})
		}},
		{"a summary", structs.CheckCounters, `the counts of group "g" in its summary`, soon, func(s *site) {
			s.store.Snapshot().JobSummary(nil, "default", "web").Summary["g"] = structs.TaskGroupSummary{Running: 7}
		}},
		{"a tally", structs.CheckCounters, "tally of job", soon, func(s *site) {
			s.eval("x", "web", structs.EvalStatusPending, 0)
			s.store.Snapshot().Eval(nil, "x").Status = structs.EvalStatusComplete
		}},
		{"a job's status", structs.CheckCounters, "status of job", soon, func(s *site) {
			s.store.Snapshot().Job(nil, "default", "web").Status = structs.JobStatusDead
		}},
		{"the World's node", structs.CheckWorld, "node c2: ", soon, func(s *site) {
			s.store.Snapshot().Node(nil, "c2").NodeResources.Memory.MemoryMB = 5000
		}},
		{"the World's sums", structs.CheckWorld, "the scheduler sees 100 MHz", soon, func(s *site) {
			s.job("x", 1, nil)
			id := s.place("x", "c2", 0, 1, nil)[0]
			s.store.Snapshot().Alloc(nil, id).AllocatedResources.Tasks["t"].Cpu.CpuShares = 200
		}},
		{"an ask without an evaluation", structs.CheckRequests, "waits for 2 instances, and no evaluation", soon, func(s *site) {
			s.eval("waits", "large", structs.EvalStatusComplete, 0)
		}},
		{"an ask in another's evaluation", structs.CheckRequests, "waits in evaluation thaw, which is of job default/frozen", soon, func(s *site) {
			s.plan(&structs.JudgedPlan{Requests: []*structs.RequestUpdate{{Namespace: "default", JobID: "large", Group: "g", Missing: 1, EvalID: "thaw"}}})
		}},
		{"an ask of nobody", structs.CheckRequests, "there is no such group", soon, func(s *site) {
			s.store.Snapshot().Job(nil, "default", "large").TaskGroups[0].Name = "other"
		}},
		{"blocked for nothing", structs.CheckBlocked, "nothing of the job is missing", later, func(s *site) {
			s.eval("x", "web", structs.EvalStatusBlocked, 1) // what it states is not what the job's requests do
		}},
		{"blocked for a stopped job", structs.CheckBlocked, "which is stopped", later, func(s *site) {
			s.eval("x", "old", structs.EvalStatusBlocked, 1)
		}},
		{"blocked twice", structs.CheckBlocked, "as does evaluation waits", soon, func(s *site) {
			s.eval("x", "large", structs.EvalStatusPending, 2)
			s.store.Snapshot().Eval(nil, "x").Status = structs.EvalStatusBlocked
		}},
		{"room for nobody", structs.CheckReservations, "for job default/nobody, which is gone", soon, func(s *site) {
			s.plan(&structs.JudgedPlan{Reserve: []*structs.Reservation{{NodeID: "b", Namespace: "default", JobID: "nobody", Group: "g", ExpiresAt: 9}}})
		}},
		{"room for who does not wait", structs.CheckReservations, "no evaluation of it is open that could end this", soon, func(s *site) {
			s.plan(&structs.JudgedPlan{Reserve: []*structs.Reservation{{NodeID: "c2", Namespace: "default", JobID: "urgent", Group: "g", ExpiresAt: 9}}})
		}},
		{"room for ever", structs.CheckReservations, "is still kept", func(s *site) Options { return Options{Now: time.Unix(7200, 0)} }, func(*site) {}},
		{"less than nothing reserved", structs.CheckReservations, "less than nothing", soon, func(s *site) {
			s.plan(&structs.JudgedPlan{Reserve: []*structs.Reservation{{NodeID: "a", Namespace: "default", JobID: "large", Group: "g", CPU: -1, ExpiresAt: 3600e9}}})
		}},
		{"a row ahead of the state", structs.CheckIndexes, "it was changed at index 9000, and the state is at", soon, func(s *site) {
			s.store.Snapshot().Eval(nil, "waits").ModifyIndex = 9000
		}},
		{"a row ahead of its table", structs.CheckIndexes, "and its table jobs is at", soon, func(s *site) {
			s.eval("x", "web", structs.EvalStatusPending, 0)
			s.store.Snapshot().Job(nil, "default", "web").ModifyIndex = s.Index()
		}},
		{"a row changed before it was made", structs.CheckIndexes, "it was made at index", soon, func(s *site) {
			s.store.Snapshot().Node(nil, "a").ModifyIndex = 0
		}},
		{"more used than owned", structs.CheckClaims, "1 cells of level gpu of nvidia/gpu/h more are in guaranteed use than it owns in node pool default", soon, func(s *site) {
			s.guaranteed()
			s.store.Snapshot().VirtualClusters(nil).Get("default").Claims = nil
		}},
		{"a table ahead of the state", structs.CheckIndexes, "table nodes was changed at index", soon, func(s *site) { s.restore(3) }},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			s := busy(t)
			s.must(&structs.NodeRegisterEntry{Node: testNode("c2"), Time: s.now(), EvalSeed: "c2"})
			x.wreck(s)
			r := s.check(x.opts(s))
			if !slices.ContainsFunc(r.Faults, func(f structs.CheckFinding) bool { return f.Rule == x.rule && strings.Contains(f.What, x.what) }) {
				t.Fatalf("not found: faults %+v, notes %+v", r.Faults, r.Notes)
			}
			if r.Healthy() || r.Found[x.rule] == 0 {
				t.Errorf("report: %+v", r)
			}
		})
	}
}

// guaranteed has the default namespace use a GPU that it owns.
func (s *site) guaranteed() {
	s.t.Helper()
	s.must(&structs.VirtualClusterUpsertEntry{VirtualCluster: &structs.VirtualCluster{Name: "default", Cells: []*structs.CellQuota{{Level: structs.LevelGPU, Count: 1}}}})
	s.job("owner", 1, nil)
	res := &structs.AllocatedResources{
		Tasks:  map[string]*structs.AllocatedTaskResources{"t": {Devices: []*structs.AllocatedDeviceResource{{Vendor: "nvidia", Type: "gpu", Name: "h", DeviceIDs: []string{"gpu-0"}}}}},
		Shared: structs.AllocatedSharedResources{Terms: &structs.AllocTerms{Priority: 50, Claim: structs.ClaimCells, CellLevel: structs.LevelGPU}},
	}
	ids := s.place("owner", "c2", 0, 1, func(b *structs.PlacementBatch) { b.Resources = res })
	a := s.store.Snapshot().Alloc(nil, ids[0])
	if r := s.check(Options{}); r.Found[structs.CheckClaims] > 0 || a.AllocatedResources.Shared.Terms.Claim != structs.ClaimCells {
		s.t.Fatalf("what is owned is not used as it should be: %+v", r.Faults)
	}
}

// restore has the state's own rows be at another index: no log leads there.
func (s *site) restore(index uint64) {
	s.t.Helper()
	store, writer := state.New(state.Options{})
	in := writer.Import()
	if err := s.store.Snapshot().Export(in.Add); err != nil {
		s.t.Fatal(err)
	}
	writer.Commit(in, index)
	s.store = store
}

// A node that came back with less than it had is for somebody to look at; where nodes
// never change, it is a fault.
func TestNodeThatShrank(t *testing.T) {
	s := busy(t)
	less := testNode("a")
	less.NodeResources.Cpu.CpuShares, less.NodeResources.Devices, less.NodeResources.Cpu.ReservableCpuCores = 1500, nil, nil
	s.must(&structs.NodeRegisterEntry{Node: less, Time: s.now(), EvalSeed: "again"})
	r := s.check(Options{})
	if !r.Healthy() || len(r.Notes) != 4 || !strings.Contains(r.Notes[0].What, "has changed since") {
		t.Errorf("findings: %+v %+v", r.Faults, r.Notes)
	}
	if r := s.check(Options{FixedNodes: true}); len(r.Faults) != 4 || len(r.Notes) != 0 {
		t.Errorf("findings where nodes never change: %+v %+v", r.Faults, r.Notes)
	}
}

// What is stopped has its kill timeout, and a group that cleans up as long as it likes.
func TestStoppedInTime(t *testing.T) {
	for _, x := range []struct {
		name  string
		after time.Duration
		group func(*structs.TaskGroup)
		found int
	}{
		{"at once", time.Second, nil, 0},
		{"just in time", 69 * time.Second, nil, 0},
		{"too late", 72 * time.Second, nil, 1},
		{"with a long kill timeout", 72 * time.Second, func(g *structs.TaskGroup) { g.Tasks[0].KillTimeout = time.Minute }, 0},
		{"with a shutdown delay", 72 * time.Second, func(g *structs.TaskGroup) { g.ShutdownDelay = 5 * time.Second }, 0},
		{"with a task that cleans up", time.Hour, func(g *structs.TaskGroup) {
			g.Tasks = append(g.Tasks, &structs.Task{Name: "clean", Lifecycle: &structs.TaskLifecycle{Hook: structs.TaskLifecycleHookPoststop}})
		}, 0},
	} {
		s := newSite(t)
		s.must(&structs.NodeRegisterEntry{Node: testNode("a"), Time: s.now(), EvalSeed: "a"})
		s.job("x", 1, func(j *structs.Job) {
			if x.group != nil {
				x.group(j.TaskGroups[0])
			}
		})
		ids := s.place("x", "a", 0, 1, nil)
		s.report(structs.AllocClientRunning, ids...)
		s.must(&structs.JobDeregisterEntry{Namespace: "default", JobID: "x", Time: s.now()})
		s.plan(&structs.JudgedPlan{Stop: []*structs.AllocStop{{AllocID: ids[0]}}})
		stopped := time.Unix(0, s.store.Snapshot().Alloc(nil, ids[0]).ModifyTime)
		if got := s.check(Options{Now: stopped.Add(x.after)}).Found[structs.CheckStopped]; got != x.found {
			t.Errorf("%s: %d findings, want %d", x.name, got, x.found)
		}
	}
}

// A check that nobody waits for any more ends, and a long list of findings is cut.
func TestBounds(t *testing.T) {
	s := busy(t)
	s.job("x", 1, nil)
	s.place("x", "a", 0, 1500, nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, s.store.Snapshot(), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	for i := range 200 {
		s.place("nobody"+fmt.Sprint(i), "b", 0, 1, nil)
	}
	r := s.check(Options{})
	kept := 0
	for _, f := range r.Faults {
		if f.Rule == structs.CheckOrphans {
			kept++
		}
	}
	if kept != structs.CheckKept || r.Found[structs.CheckOrphans] != 200 {
		t.Errorf("%d kept of %d", kept, r.Found[structs.CheckOrphans])
	}
	if again := s.check(Options{}); !slices.Equal(r.Faults, again.Faults) {
		t.Error("the same state gave another report")
	}
}
