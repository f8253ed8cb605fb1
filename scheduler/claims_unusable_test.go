package scheduler_test

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// cpuOnly adds a group without GPUs to a job.
func cpuOnly(j *structs.Job) {
	g := schedtest.Group(j).Copy()
	g.Name, g.Tasks[0].Resources.Devices = "cpu", nil
	j.TaskGroups = append(j.TaskGroups, g)
}

// TestGuaranteedWithoutGPUs: a group that requests no GPUs needs nothing that is owned, and does not wait for it, whatever the class of its job.
func TestGuaranteedWithoutGPUs(t *testing.T) {
	x := newTenants(t, owns(t, "a", "node", 1), eightGPUs("n1"))
	x.wantClasses("a group with GPUs and one without", x.decide("a", "both", 1, 2, cpuOnly, guaranteedOnly), 1, 1)
	x.wantClasses("none with GPUs", x.decide("a", "none", 2, 1, inBlocks(), guaranteedOnly), 0, 2)
}

// TestReasonsWithoutClaim: what uses no claim by what it requests waits and runs with that for a reason.
func TestReasonsWithoutClaim(t *testing.T) {
	resources := func(cpu, memory int) func(*structs.Job) {
		return func(j *structs.Job) {
			schedtest.Task(j).Resources.CPU, schedtest.Task(j).Resources.MemoryMB = cpu, memory
		}
	}
	share := inBlocks(structs.RequestedDevice{Name: "nvidia/gpu", Count: 1, Share: 500})
	gpu := func(model string) structs.RequestedDevice {
		return structs.RequestedDevice{Name: "nvidia/gpu/" + model, Count: 1}
	}
	for _, c := range []struct {
		name, reason string
		change       func(*structs.Job)
	}{
		{"CPU", "beyond the share: it requests 32001 MHz of 32000 that belong to its GPUs", resources(32_001, 100)},
		{"memory", "beyond the share: it requests 131073 MiB of memory of 131072 that belong to its GPUs", resources(32_000, 131_073)},
		{"a share", "claim: it requests no whole GPUs: only whole GPUs are owned", share},
		{"two models", "claim: it requests devices of several kinds: only devices of one kind are owned together", inBlocks(gpu("H100"), gpu("A100"))},
	} {
		x := newTenants(t, owns(t, "a", "node", 1), eightGPUs("n1"))
		if c.name != "two models" {
			plan := x.decide("a", "idle", 1, 1, c.change)
			x.wantClasses(c.name+" on an idle cluster", plan, 0, 1)
			want := "opportunistic: " + strings.TrimPrefix(c.reason, "claim: ")
			if got := x.explainPlaced(plan, "a", "idle", c.change); len(got) != 1 || got[0].Text != want || got[0].Instances != 1 {
				t.Errorf("%s, explained: %+v", c.name, got)
			}
		}
		if got := reasonsOf(x.decide("a", "waits", 1, 1, c.change, guaranteedOnly)); !containsAll(got, []string{c.reason, `withheld by class = "guaranteed"`}) {
			t.Errorf("%s: %q", c.name, got)
		}
		if got := textsOf(x.explainOver("", "a", "waits", 1, 1, c.change, guaranteedOnly)); !containsAll(got, []string{c.reason, `withheld by class = "guaranteed"`}) {
			t.Errorf("%s, a guaranteed one explained: %q", c.name, got)
		}
		x.decide("b", "flood", 8, 1)
		if got := reasonsOf(x.decide("a", "full", 8, 1, c.change)); !containsAll(got, []string{c.reason}) {
			t.Errorf("%s on a full cluster: %q", c.name, got)
		}
	}
}

// textsOf are the texts of what holds a group as a whole.
func textsOf(g *structs.GroupExplanation) (list []string) {
	for _, w := range g.Waits {
		list = append(list, w.Text)
	}
	return list
}

// TestReasonsOfGangs: a gang of which a group requests no GPUs uses no claim, and says so.
func TestReasonsOfGangs(t *testing.T) {
	x := newTenants(t, owns(t, "a", "node", 1), eightGPUs("n1"))
	x.decide("b", "flood", 8, 1)
	plan := x.decide("a", "gang", 1, 1, cpuOnly, func(j *structs.Job) { schedtest.Group(j).Gang = &structs.Gang{Groups: []string{"cpu"}} })
	if got := reasonsOf(plan); !containsAll(got, []string{"claim: a group of its gang requests no GPUs, and a gang uses a claim as a whole"}) {
		t.Errorf("%q", got)
	}
}

// explainPlaced explains a job of which a plan has placed an instance.
func (x *tenants) explainPlaced(plan *structs.Plan, namespace, id string, change func(*structs.Job)) []structs.Wait {
	x.t.Helper()
	in := scheduler.ExplainInput{Input: inputOf(changed(gpuJobOf(namespace, id, 1, 1), []func(*structs.Job){change}), &x.ids)}
	for i := range plan.Place[0].Instances {
		a := plan.Place[0].Allocation(i)
		a.Job, a.ClientStatus = in.Job, structs.AllocClientRunning
		in.Allocs = append(in.Allocs, a)
	}
	out, err := scheduler.Explain(x.pass.World(), in)
	if err != nil {
		x.t.Fatal(err)
	}
	return out.Groups[0].Waits
}

// TestWithoutClaimIn: which groups of a job can use no claim.
func TestWithoutClaimIn(t *testing.T) {
	const share, kinds = "it requests no whole GPUs: only whole GPUs are owned", "it requests devices of several kinds: only devices of one kind are owned together"
	gpu := func(model string) structs.RequestedDevice {
		return structs.RequestedDevice{Name: "nvidia/gpu/" + model, Count: 1}
	}
	withGang := func(j *structs.Job) { schedtest.Group(j).Gang = &structs.Gang{Groups: []string{"cpu"}} }
	f := func(name, group, why string, change ...func(*structs.Job)) {
		t.Helper()
		if g, w := scheduler.WithoutClaim(changed(gpuJobOf("a", "one", 2, 1), change)); g != group || w != why {
			t.Errorf("%s: %q %q", name, g, w)
		}
	}
	f("GPUs", "", "")
	f("two tasks", "", "", inTasks(1, 2))
	f("another group without", "", "", cpuOnly)
	f("none", "g", share, inBlocks())
	f("a share", "g", share, inBlocks(structs.RequestedDevice{Name: "nvidia/gpu", Count: 1, Share: 500}))
	f("a share and one", "g", share, inBlocks(gpu("H100"), structs.RequestedDevice{Name: "nvidia/gpu", Count: 1, Share: 500}))
	f("two models", "g", kinds, inBlocks(gpu("H100"), gpu("A100")))
	f("in a gang", "cpu", "it requests no whole GPUs, and its gang uses a claim as a whole", cpuOnly, withGang)
	f("a system job", "g", "instances of system and sysbatch jobs use none", func(j *structs.Job) { j.Type = structs.JobTypeSystem })
}
