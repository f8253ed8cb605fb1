package scheduler_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// TestRequestKeysAreAlike: of what waits, only that is alike which fails for the same reasons on
// the same nodes.
func TestRequestKeysAreAlike(t *testing.T) {
	config := structs.DefaultSchedulerConfiguration()
	plain := func(change ...func(*structs.Job)) *structs.Job {
		return schedtest.Job(structs.JobTypeService, 2, append([]func(*structs.Job){requests(1, 500, 500)}, change...)...)
	}
	yes, no := true, false
	has := func(change ...func(*structs.Allocation)) []*structs.Allocation {
		j := plain()
		a := &structs.Allocation{
			ID: "a", Namespace: j.Namespace, JobID: j.ID, TaskGroup: j.TaskGroups[0].Name, Job: j,
			DesiredStatus: structs.AllocDesiredRun, ClientStatus: structs.AllocClientRunning,
		}
		for _, f := range change {
			f(a)
		}
		return []*structs.Allocation{a}
	}
	sleeps := func(byUser *bool) func(*structs.Allocation) {
		return func(a *structs.Allocation) {
			a.DesiredStatus, a.DesiredTransition.Suspend = structs.AllocDesiredSuspend, byUser
		}
	}
	ended := func(a *structs.Allocation) { a.ClientStatus = structs.AllocClientFailed }
	newer := func(j *structs.Job) { j.Version = 1 }
	two := func(j *structs.Job) {
		g := j.TaskGroups[0].Copy()
		g.Name = "second"
		j.TaskGroups = append(j.TaskGroups, g)
	}
	gang := func(j *structs.Job) { j.TaskGroups[0].Gang = &structs.Gang{} }
	first := plain().TaskGroups[0].Name
	// Nothing of a node that is not there fits, so that it helps only what any room may help.
	helped := func(s *scheduler.RequestKey) bool { return s.Helped(scheduler.NewWorld(), "none") }
	fresh := scheduler.RequestKeyOf(scheduler.NewWorld(), plain(), []string{first}, nil, config, false)
	if fresh.Key == "" || helped(&fresh) {
		t.Fatalf("of a fresh job: %+v", fresh)
	}
	f := func(name string, alike, anywhere bool, job *structs.Job, groups []string, has []*structs.Allocation) {
		t.Helper()
		s := scheduler.RequestKeyOf(scheduler.NewWorld(), job, groups, has, config, false)
		if (s.Key == fresh.Key) != alike || helped(&s) != anywhere || !alike && s.Key != "" {
			t.Errorf("%s: alike %v, any room helps %v; want %v, %v", name, s.Key == fresh.Key, helped(&s), alike, anywhere)
		}
	}
	one, both := []string{first}, []string{first, "second"}
	f("another", true, false, plain(func(j *structs.Job) { j.ID = "another" }), one, nil)
	f("one of two groups", true, false, plain(two), one, nil)
	f("both of two groups", false, false, plain(two), both, nil)
	f("another runs", true, false, plain(), one, has())
	f("another is suspended by a user", true, false, plain(), one, has(sleeps(&yes)))
	f("it is suspended", false, true, plain(), one, has(sleeps(nil)))
	f("a user lets it go on", false, true, plain(), one, has(sleeps(&no)))
	f("it was suspended and has ended", true, false, plain(), one, has(sleeps(&no), ended))
	f("an older version runs", false, true, plain(newer), one, has())
	f("an older version has ended", true, false, plain(newer), one, has(ended))
	f("an older version of a group that waits not", true, false, plain(newer, two), one, has(func(a *structs.Allocation) { a.TaskGroup = "second" }))
	f("a job of the same name before it runs", false, true, plain(func(j *structs.Job) { j.CreateIndex = 7 }), one, has())
	f("a new gang", false, false, plain(gang), one, nil)
	f("a gang that runs", false, true, plain(gang), one, has())
	f("a gang with another group that runs", false, true, plain(gang, two), one, has(func(a *structs.Allocation) { a.TaskGroup = "second" }))
}

// TestRoomHelps: what is left of room on all nodes helps a request where one of the nodes does, while instances take more and more of it.
func TestRoomHelps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		edit, left := scheduler.NewWorld().Edit(), scheduler.NewRoom()
		ids := []string{"n1", "n2", "n3"}
		for _, id := range ids {
			edit.UpsertNode(schedtest.Node(id))
		}
		for i := range 12 {
			cpu := rapid.SampledFrom([]int{500, 1500, 3500}).Draw(t, "cpu")
			job := schedtest.Job(structs.JobTypeBatch, 1, requests(50, cpu, 100))
			w := edit.World()
			key := scheduler.RequestKeyOf(w, job, []string{schedtest.Group(job).Name}, nil, structs.DefaultSchedulerConfiguration(), false)
			some := rapid.SampledFrom([][]string{nil, ids[:1], ids[1:]}).Draw(t, "nodes")
			among := some
			if some == nil {
				among = ids
			}
			want := slices.ContainsFunc(among, func(id string) bool { return key.Helped(w, id) })
			if have := left.Helped(w, &key, some); have != want {
				t.Fatalf("step %d: %d on %v: helped %v, want %v", i, cpu, some, have, want)
			}
			edit.UpsertAlloc(&structs.Allocation{
				ID: fmt.Sprintf("a%d", i), NodeID: rapid.SampledFrom(ids).Draw(t, "node"), JobID: "j", TaskGroup: "g", Namespace: structs.DefaultNamespace,
				DesiredStatus: structs.AllocDesiredRun, ClientStatus: structs.AllocClientRunning,
				AllocatedResources: &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{
					"t": {Cpu: structs.AllocatedCpuResources{CpuShares: 1000}},
				}},
			})
		}
	})
}
