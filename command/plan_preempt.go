package command

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// preemptedShown bounds the allocations that a plan lists one by one; more are counted
// by job.
const preemptedShown = 10

// showPreempted prints which allocations a plan would preempt.
func showPreempted(p *printer, a *structs.PlanAnnotations, verbose bool) {
	if a == nil || len(a.PreemptedAllocs) == 0 {
		return
	}
	p.printf("%s\n", p.style.Bold("Preemptions:"))
	if verbose || len(a.PreemptedAllocs) <= preemptedShown {
		rows := [][]string{{"Alloc ID", "Namespace", "Job ID", "Task Group", "Node", "How"}}
		for _, s := range a.PreemptedAllocs {
			rows = append(rows, []string{short(s.ID, verbose), s.Namespace, s.JobID, s.TaskGroup, s.NodeName, reclaimWord(s)})
		}
		ui.Table(p.out, rows)
		p.printf("\n")
		return
	}
	type line struct{ namespace, job, group, how string }
	counts := map[line]int{}
	for _, s := range a.PreemptedAllocs {
		counts[line{s.Namespace, s.JobID, s.TaskGroup, reclaimWord(s)}]++
	}
	lines := make([]line, 0, len(counts))
	for l := range counts {
		lines = append(lines, l)
	}
	slices.SortFunc(lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.job, b.job), cmp.Compare(a.group, b.group), cmp.Compare(a.how, b.how))
	})
	rows := [][]string{{"Namespace", "Job ID", "Task Group", "Allocations", "How"}}
	for _, l := range lines {
		rows = append(rows, []string{l.namespace, l.job, l.group, strconv.Itoa(counts[l]), l.how})
	}
	ui.Table(p.out, rows)
	p.printf("\n")
}

// reclaimWord is how an allocation would release what it holds.
func reclaimWord(s *structs.AllocListStub) string {
	if s.DesiredStatus == structs.AllocDesiredSuspend {
		return "suspended"
	}
	return "stopped, back to the queue"
}
