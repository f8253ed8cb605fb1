package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/scheduler/internal/decide"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/metric"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Why a group as a whole waits, apart from what nodes lack.

// idle reports whether nothing of a group is wanted, and explains why.
func (x *explainer) idle(out *structs.GroupExplanation) bool {
	add := func(kind, text string) bool {
		out.Waits = append(out.Waits, structs.Wait{Kind: kind, Text: text})
		return true
	}
	switch job := x.in.Job; {
	case job.Stopped():
		return add(structs.ReasonStopped, "the job is stopped")
	case job.IsPeriodic():
		return add(structs.ReasonPeriodic, "the job is periodic: it does not run, as there are no periodic jobs yet")
	case job.IsParameterized():
		return add(structs.ReasonParameters, "the job is parameterized: it does not run, as there are no parameterized jobs yet")
	}
	return false
}

// wait explains why instances wait for a reason that no node has.
func (x *explainer) wait(out *structs.GroupExplanation) {
	if x.in.Config.PauseEvalBroker && out.Missing > 0 {
		out.Waits = append(out.Waits, structs.Wait{
			Kind: structs.ReasonPaused, Instances: out.Missing,
			Text: "the scheduler configuration pauses all evaluations (PauseEvalBroker)",
		})
	}
	if out.PlacedNow > 0 {
		out.Waits = append(out.Waits, x.notTried(out))
	}
	if out.Missing > out.PlacedNow && feasible.AllOrNone(x.in.Job) {
		out.Waits = append(out.Waits, structs.Wait{
			Kind: structs.ReasonAllAtOnce, Instances: out.Missing,
			Text: "the job wants all at once (" + allAtOnceText(x.in.Job) + "), and not all find room",
		})
	}
	x.updates(out)
	x.restarts(out)
	x.failures(out)
	x.away(out)
	x.suspended(out)
	x.leaving(out)
}

// suspended reports the suspended instances, and until when the first of them is.
func (x *explainer) suspended(out *structs.GroupExplanation) {
	if out.Suspended == 0 {
		return
	}
	wait := structs.Wait{
		Kind: structs.ReasonSuspended, Instances: out.Suspended,
		Text: "suspended to make room for others; they go on in place when there is room again",
	}
	for _, a := range x.allocs {
		if a.TaskGroup != out.Group || a.Terminal() || !a.Suspended() || a.SuspendedAt == 0 {
			continue
		}
		if at := a.SuspendedAt + int64(x.in.Config.SuspendedFor()); wait.Until == 0 || at < wait.Until {
			wait.Until = at
		}
	}
	if wait.Until > 0 {
		wait.Text += "; without room the first of them is requeued" // the time follows
	}
	out.Waits = append(out.Waits, wait)
}

// allAtOnceText returns the setting by which a job must be placed all at once.
func allAtOnceText(job *structs.Job) string {
	if job.AllAtOnce {
		return "all_at_once"
	}
	return `partial = "none"`
}

// notTried is of instances for which there is room.
func (x *explainer) notTried(out *structs.GroupExplanation) structs.Wait {
	wait := structs.Wait{Kind: structs.ReasonNotTried, Instances: out.PlacedNow, Text: "there is room, but they were not tried yet"}
	if q := x.in.Queue; q != nil && q.Place > 0 {
		wait.Text += fmt.Sprintf(": place %d of %d in the queue of node pool %q", q.Place, q.Waiting, q.Pool)
	}
	var victims []string
	for _, st := range x.plan.Stop {
		if st.PreemptedBy != "" {
			victims = append(victims, st.AllocID)
		}
	}
	if len(victims) > 0 {
		wait.Text += fmt.Sprintf("; %s would be preempted", allocations(len(victims)))
		wait.Allocs, wait.AllocCount = victims[:min(len(victims), allocsNamed)], len(victims)
	}
	return wait
}

func allocations(n int) string {
	if n == 1 {
		return "1 allocation"
	}
	return fmt.Sprintf("%d allocations", n)
}

// letGo returns the text for n allocations that are being preempted and must end first.
func letGo(n int) string {
	if n == 1 {
		return "1 allocation that is being preempted has ended"
	}
	return fmt.Sprintf("%d allocations that are being preempted have ended", n)
}

// updates reports the instances of older versions that are not replaced yet.
func (x *explainer) updates(out *structs.GroupExplanation) {
	var old []string
	for _, a := range x.allocs {
		if a.TaskGroup == out.Group && !a.Terminal() && a.JobVersion != x.in.Job.Version &&
			structs.JobGroupChange(a.Job, x.in.Job, a.TaskGroup) == structs.ChangeDestructive {
			old = append(old, a.ID)
		}
	}
	work := x.works[out.Group]
	if len(old) == 0 || work == nil {
		return
	}
	add := func(n int, text string) {
		if n > 0 {
			out.Waits = append(out.Waits, structs.Wait{
				Kind: structs.ReasonUpdate, Instances: n, Text: text, Allocs: old[:min(len(old), allocsNamed)], AllocCount: len(old),
			})
		}
	}
	most := 0
	if u := work.Group.Update; u != nil {
		most = feasible.Value(u.MaxParallel)
	}
	room := min(len(work.Update), len(old))
	add(len(old)-room, fmt.Sprintf("of an older version; replaced as newer ones become healthy, %d at a time (max_parallel)", most))
	add(room, "of an older version; there is no room for what is to replace them, and until then they keep running")
}

// away reports the instances on disconnected nodes, and until when they are awaited.
func (x *explainer) away(out *structs.GroupExplanation) {
	waits := map[string]*structs.Wait{}
	for _, a := range x.allocs {
		n, known := x.s.World.Node(a.NodeID)
		if a.TaskGroup != out.Group || a.ClientStatus != structs.AllocClientUnknown || a.ServerTerminal() || !known {
			continue
		}
		g := a.GroupNow(x.in.Job)
		until := n.AwaitedUntil(g)
		text := "on a node that is disconnected: what they do is not known; "
		switch {
		case a.NextAllocation != "":
			text += "they have been replaced; when the node is back, disconnect { reconcile } decides which allocations stay"
		case g.ReplacedMeanwhile():
			text += "others are to stand for them until it is back"
		case until.Equal(structs.Forever):
			text += "nothing stands for them until it is back (disconnect { replace = false }), or until `nomadish alloc stop` ends them"
		default:
			text += "they are waited for, then lost, and placed again"
		}
		timed := !until.IsZero() && until.Before(structs.Forever)
		if timed && (a.NextAllocation != "" || g.ReplacedMeanwhile()) {
			text += "; if it is not, they count as lost" // the time follows
		}
		w := waits[text]
		if w == nil {
			w = &structs.Wait{Kind: structs.ReasonAway, Text: text}
			waits[text] = w
		}
		if at := until.UnixNano(); timed && (w.Until == 0 || at < w.Until) {
			w.Until = at
		}
		w.Instances++
		w.AllocCount++
		if len(w.Allocs) < allocsNamed {
			w.Allocs = append(w.Allocs, a.ID)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(waits)) {
		out.Waits = append(out.Waits, *waits[text])
	}
}

// leaving reports the allocations that must end before placed ones can start.
func (x *explainer) leaving(out *structs.GroupExplanation) {
	ours := map[string]bool{}
	for _, a := range x.in.Allocs {
		if a.TaskGroup == out.Group && !a.Terminal() && a.ClientStatus == structs.AllocClientPending {
			ours[a.ID] = true
		}
	}
	reserved := map[string]bool{}
	var victims []string
	for _, a := range x.in.Leaving {
		if ours[a.PreemptedByAllocation] && !a.ClientTerminal() {
			victims = append(victims, a.ID)
			reserved[a.PreemptedByAllocation] = true
		}
	}
	if len(victims) == 0 {
		return
	}
	slices.Sort(victims)
	out.Waits = append(out.Waits, structs.Wait{
		Kind: structs.ReasonReclaim, Instances: len(reserved), Allocs: victims[:min(len(victims), allocsNamed)], AllocCount: len(victims),
		Text: "placed; they start once " + letGo(len(victims)),
	})
}

// gang reports how much room there is for a gang, which must be placed all at once.
func (x *explainer) gang(out *structs.GroupExplanation, sv *survey) {
	work := x.works[out.Group]
	if work == nil || work.Gang == nil || !work.Gang.Whole || work.Gang.First() == 0 {
		return
	}
	p := decide.NewGangPlacer(x.s, work.Gang)
	if t := p.Place(); t != nil {
		p.Undo(t)
		return // there is room: it waits for another reason
	}
	why := p.Why()
	r := structs.NodeReason{Kind: structs.ReasonGang, Nodes: sv.counts.Fitting, Text: why.Text}
	if why.Rooms != nil {
		r.Kind, r.Subject = structs.ReasonTopology, work.Gang.Spec.Topology.Level
	}
	for _, room := range why.Rooms[:min(len(why.Rooms), nodesNamed)] {
		r.Rooms = append(r.Rooms, structs.CellRoom{
			Level: room.Level, Name: room.Name, Room: int(room.Count(p)), Want: work.Gang.First(),
		})
	}
	if short := p.ShortOfAll(); short != "" {
		r.Text += "; " + strings.TrimPrefix(short, "gang: ")
	}
	if why.Rooms != nil && len(sv.withheld) > 0 {
		r.Text += "; what workflows have reserved is not counted"
	}
	for _, n := range sv.fitting {
		if class := n.Node.NodeClass; class != "" {
			metric.AddCount(&r.Classes, class, 1)
		}
	}
	out.Reasons = append(out.Reasons, r)
}

// preemption explains why nothing is preempted for the group.
func (x *explainer) preemption(out *structs.GroupExplanation, sv *survey) {
	if len(sv.short) == 0 {
		return
	}
	band := x.in.Config.Band(x.in.Job.Priority)
	lower, immune, first := 0, 0, []*world.Usage(nil)
	jobs, guaranteed := map[structs.NamespacedID]int{}, map[structs.NamespacedID]int{}
	bands := x.in.Config.PriorityBands()
	for i := range sv.short {
		for _, u := range sv.short[i].n.Usages {
			if band == 0 || u.Owner.Terms.Priority >= bands[band].Low || x.own(u) {
				continue
			}
			if u.Guaranteed() {
				guaranteed[structs.NamespacedID{ID: u.Owner.Job, Namespace: u.Owner.Namespace}]++
				continue
			}
			if u.Immune(&x.in.Config) {
				immune++
				continue
			}
			lower++
			jobs[structs.NamespacedID{ID: u.Owner.Job, Namespace: u.Owner.Namespace}]++
			first = keepFirst(first, u)
		}
	}
	wait := structs.Wait{Kind: structs.ReasonPreemption, AllocCount: lower}
	for _, u := range first {
		wait.Allocs = append(wait.Allocs, u.ID)
	}
	mine := fmt.Sprintf("%d to %d", bands[band].Low, bands[band].High)
	victims := allocations(lower)
	if lower > 1 {
		victims += " (" + countsText(jobs, x.in.Job.Namespace) + ")"
	}
	on := x.in.Config.Preempts(x.in.Job.Type)
	work := x.works[out.Group]
	switch {
	case lower == 0 && len(guaranteed) > 0:
		wait.Text = fmt.Sprintf("nothing can be preempted: all that is in a lower priority band than its own (%s) on the nodes that it may use is guaranteed: %s",
			mine, countsText(guaranteed, x.in.Job.Namespace))
	case lower == 0:
		wait.Text = fmt.Sprintf("nothing can be preempted: no allocation on the nodes that it may use is in a lower priority band than its own (%s)", mine)
	case !on:
		wait.Text = fmt.Sprintf("nothing is preempted: preemption is off for %s jobs; %s of lower bands than its own (%s) are on the nodes that it may use",
			x.in.Job.Type, victims, mine)
	case x.in.Job.Partial == structs.PartialFree:
		wait.Text = fmt.Sprintf("nothing is preempted: partial = \"free\" uses free resources only; "+
			"with \"preempt\" it could preempt %s of lower bands than its own (%s)", victims, mine)
	case work != nil && work.Gang != nil && work.Gang.Whole:
		wait.Text = fmt.Sprintf("nothing is preempted: the resources of %s of lower bands than its own (%s) would not be enough for "+
			"all of the gang that must start together", victims, mine)
	case work != nil && work.Gang != nil:
		wait.Text = fmt.Sprintf("nothing is preempted, though %s of lower bands than its own (%s) are on the nodes that it may use: "+
			"members of a gang above its min are placed on free resources only", victims, mine)
	case feasible.AllOrNone(x.in.Job):
		wait.Text = fmt.Sprintf("nothing is preempted: the job must be placed whole (%s), and the resources of %s of lower bands "+
			"than its own (%s) would not be enough for that", allAtOnceText(x.in.Job), victims, mine)
	default:
		wait.Text = fmt.Sprintf("nothing is preempted: the resources of %s of lower bands than its own (%s) would not be enough", victims, mine)
	}
	if immune > 0 {
		wait.Text += "; " + immuneText(immune, x.in.Config.RequeuesAllowed())
	}
	out.Waits = append(out.Waits, wait)
}

// immuneText returns the text for n instances that were requeued so often that bands do not take them any more.
func immuneText(n, allowed int) string {
	who := fmt.Sprintf("%d instances are", n)
	if n == 1 {
		who = "1 instance is"
	}
	if allowed == 0 {
		return who + " not preempted: max_requeues is 0"
	}
	return who + " not preempted any more: requeued " + times(allowed)
}

// times returns how often something happened, in words.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// own reports whether a usage is of the job itself.
func (x *explainer) own(u *world.Usage) bool {
	return u.Owner.Namespace == x.in.Job.Namespace && u.Owner.Job == x.in.Job.ID
}

// compareVictims orders allocations, the first to be preempted first: those that are not guaranteed, then the lowest priority, the latest
// submitted of one (semantics part 3).
func compareVictims(a, b *world.Usage) int {
	return cmp.Or(compareBool(a.Guaranteed(), b.Guaranteed()), cmp.Compare(a.Owner.Terms.Priority, b.Owner.Terms.Priority), cmp.Compare(b.Owner.Terms.Submitted, a.Owner.Terms.Submitted),
		strings.Compare(a.ID, b.ID))
}

// keepFirst puts a usage into the sorted list of the first ones to be preempted, which is bounded.
func keepFirst(list []*world.Usage, u *world.Usage) []*world.Usage {
	if len(list) == allocsNamed && compareVictims(u, list[allocsNamed-1]) >= 0 {
		return list
	}
	at, _ := slices.BinarySearchFunc(list, u, compareVictims)
	list = slices.Insert(list, at, u)
	return list[:min(len(list), allocsNamed)]
}

// clockTime is a time as an explanation writes it.
func clockTime(unix int64) string { return time.Unix(0, unix).UTC().Format(time.RFC3339) }
