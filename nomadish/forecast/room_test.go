package forecast

import (
	"testing"
	"time"

	"github.com/nomadish/nomadish/nomadish/queue"
	"github.com/nomadish/nomadish/nomadish/worker"
	"github.com/nomadish/nomadish/structs"
)

// TestLeaversRoom: what is placed where another one was stopped starts when that has left if there is no room for both of anything that its client counts,
// and at once otherwise.
func TestLeaversRoom(t *testing.T) {
	const kill = 5 * time.Minute
	for _, c := range []struct {
		name  string
		waits bool
		needs func(g *structs.TaskGroup)
	}{
		{"processor", true, func(g *structs.TaskGroup) { g.Tasks[0].Resources.CPU = 60_000 }},
		{"memory", true, func(g *structs.TaskGroup) { g.Tasks[0].Resources.MemoryMB = 600_000 }},
		{"disk", true, func(g *structs.TaskGroup) { g.EphemeralDisk = &structs.EphemeralDisk{SizeMB: 600_000} }},
		{"port", true, func(g *structs.TaskGroup) {
			g.Networks = []*structs.NetworkResource{{DynamicPorts: []structs.Port{{Label: "web", Value: 8080}}}}
		}},
		{"cores", true, func(g *structs.TaskGroup) { g.Tasks[0].Resources.CPU, g.Tasks[0].Resources.Cores = 0, 3 }},
		{"devices", true, func(g *structs.TaskGroup) {
			g.Tasks[0].Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: 8}}
		}},
		{"a part of a device", false, func(g *structs.TaskGroup) {
			g.Tasks[0].Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: 1, Share: 300}}
		}},
		{"little", false, func(*structs.TaskGroup) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newReality(t)
			n := gpuNode("node")
			n.NodeResources.Cpu.TotalCpuCores, n.NodeResources.Cpu.ReservableCpuCores = 4, []uint16{0, 1, 2, 3}
			n.NodeResources.Networks = []*structs.NetworkResource{{Mode: "host", Device: "eth0", IP: "10.0.0.1"}}
			n.ComputeClass()
			r.put(&structs.NodeRegisterEntry{Node: n, Time: r.now.UnixNano()})
			job := func(id string) *structs.Job {
				j := cpuJob(id, 50, 100, time.Hour)
				j.TaskGroups[0].Tasks[0].KillTimeout = kill
				c.needs(j.TaskGroups[0])
				return j
			}
			j := job("stopped")
			r.submit(j)
			r.until(r.now.Add(time.Minute))
			now := r.now.UnixNano()
			r.put(&structs.JobDeregisterEntry{
				Namespace: j.Namespace, JobID: j.ID, Eval: structs.NewEval(r.newID(), j, structs.EvalTriggerJobDeregister, now), Time: now,
			})
			r.submit(job("waits"))
			f := r.forecast(Options{Only: &structs.NamespacedID{Namespace: j.Namespace, ID: "waits"}})
			if len(f.Requests) != 1 {
				t.Fatalf("%d requests wait", len(f.Requests))
			}
			want := r.now
			if c.waits {
				want = want.Add(kill)
			}
			if got := f.Requests[0].Latest; !time.Unix(0, got.All).Equal(want) {
				t.Errorf("it starts %s (%s), not %s", time.Unix(0, got.All).UTC(), got.Unknown, want)
			}
		})
	}
}

// TestNothingIsTriedWhileNothingHappens: who waits for what never ends is not tried again and again for reservations that nothing has made possible since, and
// starts when its room comes free all the same.
func TestNothingIsTriedWhileNothingHappens(t *testing.T) {
	r := newReality(t)
	minted, mint := 0, ids("quiet") // each request that is tried has a token
	apply := func(typ structs.LogType, payload any) (uint64, error) {
		return r.log.Apply(t.Context(), typ, payload)
	}
	r.leader = newLeader(r.log.Store, apply, epoch, func() string { minted++; return mint() }, worker.PassOptions{
		Explain: never, ExplainEach: never, Unread: true, Typicals: worker.NewTypicals(),
	}, queue.Options{})
	t.Cleanup(r.stop)
	r.nodes(1)
	endless, waits := gpuJob("endless", 50, 1, 8, 0), gpuJob("waits", 50, 1, 8, time.Hour)
	r.submit(endless)
	r.until(r.now.Add(time.Minute))
	r.submit(waits)
	r.until(r.now.Add(time.Hour))
	before := minted
	r.until(r.now.Add(24 * time.Hour))
	if n := minted - before; n > 0 {
		t.Errorf("in a day in which nothing happens %d requests are tried", n)
	}
	ended := r.now
	r.put(&structs.JobDeregisterEntry{
		Namespace: endless.Namespace, JobID: endless.ID, Eval: structs.NewEval(r.newID(), endless, structs.EvalTriggerJobDeregister, r.now.UnixNano()), Time: r.now.UnixNano(),
	})
	r.until(r.now.Add(time.Minute))
	if starts := r.starts[groupKey{waits.NamespacedID(), "g"}]; len(starts) != 1 || starts[0].Before(ended) {
		t.Errorf("it starts at %v, when its room is free from %s", starts, ended)
	}
}
