package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/structs"
)

// randomPlan returns a plan with a little or a lot of everything.
func randomPlan(t *rapid.T, id string) *structs.JudgedPlan {
	uuid := func(n int) string { return structs.DeriveID(id, uint64(n)) } // small
	p := &structs.JudgedPlan{EvalID: uuid(0), Time: 1_700_000_000_000_000_000}
	for i := range rapid.IntRange(0, 40).Draw(t, "stops") {
		p.Stop = append(p.Stop, &structs.AllocStop{
			AllocID: uuid(i), DesiredStatus: structs.AllocDesiredStop, DesiredDescription: "alloc not needed due to job update",
			ClientStatus: structs.AllocClientLost, FollowupEvalID: uuid(i + 1), PreemptedBy: uuid(i + 2),
		})
	}
	res := func() *structs.AllocatedResources {
		r := &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{}, Shared: structs.AllocatedSharedResources{DiskMB: 300}}
		for i := range rapid.IntRange(1, 5).Draw(t, "tasks") {
			r.Tasks[fmt.Sprint("a-task-of-usual-name-", i)] = &structs.AllocatedTaskResources{
				Cpu: structs.AllocatedCpuResources{CpuShares: 500}, Memory: structs.AllocatedMemoryResources{MemoryMB: 256, MemoryMaxMB: 512},
			}
		}
		return r
	}
	for i := range rapid.IntRange(0, 10).Draw(t, "updates") {
		p.Update = append(p.Update, &structs.AllocInPlace{AllocID: uuid(i), JobVersion: 7, EvalID: uuid(0), Resources: res()})
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "batches") {
		b := &structs.PlacementBatch{
			Namespace: "default", JobID: "job", Group: "group", Seed: uuid(i), EvalID: uuid(0), JobVersion: 3, CreateTime: p.Time, Resources: res(),
			Metrics: &structs.AllocMetric{
				NodesEvaluated: 1000, NodePool: "default", NodesAvailable: map[string]int{"dc1": 1000},
				ConstraintFiltered: map[string]int{"${attr.kernel.name} = linux": 10}, ScoreMetaData: []*structs.NodeScoreMeta{{
					NodeID: uuid(1), Scores: map[string]float64{"binpack": 0.5}, NormScore: 0.5,
				}},
			},
		}
		for n := range rapid.IntRange(1, 60).Draw(t, "nodes") {
			b.Nodes = append(b.Nodes, structs.PlacedNode{ID: uuid(1000 + n), Name: fmt.Sprint("a-host-name.example-", n)})
		}
		if rapid.Bool().Draw(t, "a gang") {
			b.Gang = &structs.AllocGang{Size: 100, Level: "rack"}
			for n := range 100 {
				b.Gang.Hosts = append(b.Gang.Hosts, fmt.Sprintf("192.168.100.%d:20000", n))
			}
		}
		gang := rapid.Bool().Draw(t, "ranked")
		rich := rapid.Bool().Draw(t, "rich")
		for n := range rapid.IntRange(1, 150).Draw(t, "instances") {
			in := structs.Instance{Ordinal: uint32(n), Index: n, Node: n % len(b.Nodes)} // small
			if gang {
				in.Rank = n
			}
			if rich {
				in.Ports = []structs.PortMapping{{Label: "http", Value: 20000 + n, To: 8080, HostIP: "192.168.100.100"}}
				in.Cores, in.CoreMHz = map[string][]uint16{"task": {1, 2, 3}}, map[string]int64{"task": 3000}
				in.Devices = map[string][]*structs.AllocatedDeviceResource{"task": {{
					Vendor: "nvidia", Type: "gpu", Name: "A100-SXM4-80GB", DeviceIDs: []string{"GPU-" + uuid(n)},
				}}}
				in.PreviousAllocation = uuid(n)
				in.RescheduleTracker = &structs.RescheduleTracker{LastReschedule: "ok", Events: []*structs.RescheduleEvent{
					{RescheduleTime: p.Time, PrevAllocID: uuid(n), PrevNodeID: uuid(n), Delay: 1e9},
				}}
			}
			b.Instances = append(b.Instances, in)
		}
		p.Place = append(p.Place, b)
	}
	for i := range rapid.IntRange(0, 20).Draw(t, "reservations") {
		p.Unreserve = append(p.Unreserve, uuid(i))
		p.Reserve = append(p.Reserve, &structs.Reservation{
			NodeID: uuid(i), Namespace: "default", JobID: "job", Group: "group", CPU: 1000, MemoryMB: 4096, DiskMB: 300, Devices: 8, Cores: 4,
			MadeAt: p.Time, DueAt: p.Time + 1, ExpiresAt: p.Time + 2,
		})
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "evals") {
		e := &structs.Evaluation{
			ID: uuid(i), Namespace: "default", JobID: "job", Type: "service", Status: "complete", TriggeredBy: "job-register",
			QueuedAllocations: map[string]int{"group": 3}, BlockedEval: uuid(9), PreviousEval: uuid(8), ClassEligibility: map[string]bool{},
		}
		for c := range rapid.IntRange(0, 30).Draw(t, "classes") {
			e.ClassEligibility[fmt.Sprint("v1:1234567890123456", c)] = c%2 == 0
		}
		if rapid.Bool().Draw(t, "failed") {
			e.FailedTGAllocs = map[string]*structs.AllocMetric{"group": {ConstraintFiltered: map[string]int{"missing driver": 4}}}
		}
		p.Evals = append(p.Evals, e)
	}
	return p
}

// placed lists what a plan places, as allocations.
func placed(plans ...*structs.JudgedPlan) (out []string) {
	for _, p := range plans {
		for _, b := range p.Place {
			for i := range b.Instances {
				a := b.Allocation(i)
				out = append(out, fmt.Sprint(a.ID, a.Name, a.NodeID, a.NodeName, a.EvalID, len(a.AllocatedResources.Tasks), a.PreviousAllocation))
			}
		}
	}
	slices.Sort(out)
	return out
}

// TestPack: entries contain all of every plan, in order, no entry is above the limit but
// that of a plan that may not be cut, and the evaluations come with a plan's last part.
func TestPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]int{8 << 10, 32 << 10, 512 << 10}).Draw(t, "limit")
		var plans []*judged
		for i := range rapid.IntRange(1, 4).Draw(t, "plans") {
			p := randomPlan(t, fmt.Sprint("plan-", i))
			plans = append(plans, &judged{accepted: p, waiting: &waiting{plan: &structs.Plan{AllAtOnce: rapid.IntRange(0, 3).Draw(t, "gang") == 0}}})
		}
		parts := map[*judged][]*structs.JudgedPlan{}
		ended := map[*judged]bool{}
		for _, entry := range pack(plans, limit, facts1{}) {
			commit := &structs.PlanCommit{}
			gang, members := false, false
			for _, p := range entry {
				commit.Plans = append(commit.Plans, p.accepted)
				parts[p.judged] = append(parts[p.judged], p.accepted)
				if ended[p.judged] {
					t.Fatalf("a part after the last one")
				}
				ended[p.judged] = p.last
				if !p.last && len(p.accepted.Evals) > 0 {
					t.Fatalf("evaluations before the last part")
				}
				gang = gang || (p.plan.AllAtOnce && sizeOf(p.judged.accepted) > limit)
				members = members || slices.ContainsFunc(p.accepted.Place, func(b *structs.PlacementBatch) bool { return b.Gang != nil })
			}
			encoded, err := fsm.Encode(structs.LogPlanApply, commit)
			if err != nil {
				t.Fatal(err)
			}
			if !gang && !members && len(encoded) > limit {
				t.Fatalf("an entry of %d bytes, the limit is %d", len(encoded), limit)
			}
			if gang && len(entry) > 1 {
				t.Fatalf("a gang above the limit shares an entry")
			}
		}
		for _, j := range plans {
			got := parts[j]
			if !ended[j] || (j.plan.AllAtOnce && len(got) != 1) {
				t.Fatalf("a plan in %d parts, ended: %v, all at once: %v", len(got), ended[j], j.plan.AllAtOnce)
			}
			if !slices.Equal(placed(got...), placed(j.accepted)) {
				t.Fatalf("cut:\n%v\nwhole:\n%v", placed(got...), placed(j.accepted))
			}
			joined := &structs.JudgedPlan{}
			for _, p := range got {
				joined.Stop, joined.Update, joined.Evals = append(joined.Stop, p.Stop...), append(joined.Update, p.Update...), append(joined.Evals, p.Evals...)
				joined.Unreserve, joined.Reserve = append(joined.Unreserve, p.Unreserve...), append(joined.Reserve, p.Reserve...)
				if len(p.Place) > 0 && len(joined.Unreserve) < len(j.accepted.Unreserve) {
					t.Fatalf("something is placed before its reservation has ended")
				}
				if p.EvalID != j.accepted.EvalID || p.Time != j.accepted.Time {
					t.Fatalf("a part of another plan: %+v", p)
				}
			}
			if !slices.Equal(joined.Unreserve, j.accepted.Unreserve) || !slices.Equal(joined.Reserve, j.accepted.Reserve) {
				t.Fatalf("reservations got lost")
			}
			if !reflect.DeepEqual([]any{joined.Stop, joined.Update, joined.Evals}, []any{j.accepted.Stop, j.accepted.Update, j.accepted.Evals}) {
				t.Fatalf("stops, updates or evaluations got lost")
			}
		}
	})
}

// TestPartsOfReservations: a part that contains nothing but reservations, or ends nothing
// but some, is something to commit.
func TestPartsOfReservations(t *testing.T) {
	p := &structs.JudgedPlan{EvalID: "e", Evals: []*structs.Evaluation{{ID: "e"}}}
	for i := range 100 {
		p.Unreserve = append(p.Unreserve, fmt.Sprint("ended-", i))
		p.Reserve = append(p.Reserve, &structs.Reservation{NodeID: fmt.Sprint("node-", i), JobID: "j", Group: "g"})
	}
	parts := cut(&judged{waiting: &waiting{plan: &structs.Plan{}}, accepted: p}, 4<<10, facts1{})
	if len(parts) < 4 {
		t.Fatalf("%d parts: nothing was cut", len(parts))
	}
	for i, part := range parts {
		if empty(part) {
			t.Errorf("part %d of %d, with %d reservations, would not be committed", i+1, len(parts), len(part.Reserve)+len(part.Unreserve))
		}
	}
}

// TestSizes: the estimate is above the encoding, but not by far where it is large: cut
// by an estimate of five times the truth, entries would be a fifth of what they may be.
func TestSizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := randomPlan(t, strings.Repeat("x", 8))
		encoded, err := fsm.Encode(structs.LogPlanApply, &structs.PlanCommit{Plans: []*structs.JudgedPlan{p}})
		if err != nil {
			t.Fatal(err)
		}
		if got := sizeOf(p); got < len(encoded) || (len(encoded) > 20_000 && got > 5*len(encoded)) {
			t.Fatalf("estimated %d bytes, encoded %d", got, len(encoded))
		}
	})
}
