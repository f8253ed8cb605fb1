package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/structs"
)

// preemptedRequested bounds the allocations that are looked up to name the jobs that lost
// them; more are counted.
const preemptedRequested = 32

// preemptedText returns which allocations were preempted: "3 allocations of job
// "night"". ns is the taker's namespace; jobs of others are named with theirs. Empty: none
// was.
func (e *env) preemptedText(ctx context.Context, ids []string, ns string) string {
	if len(ids) == 0 {
		return ""
	}
	q := &api.Query{Namespace: structs.AllNamespaces}
	counts := map[structs.NamespacedID]int{}
	var jobs []structs.NamespacedID // as they come
	named := 0
	for _, id := range ids[:min(len(ids), preemptedRequested)] {
		a, _, err := e.client.Allocations().Info(ctx, id, q)
		if err != nil {
			continue // it was collected: it is counted with the others
		}
		job := structs.NamespacedID{ID: a.JobID, Namespace: a.Namespace}
		if counts[job] == 0 {
			jobs = append(jobs, job)
		}
		counts[job]++
		named++
	}
	if named == 0 {
		return plural(len(ids), "allocation")
	}
	var parts []string
	for _, job := range jobs {
		parts = append(parts, plural(counts[job], "allocation")+" of "+job.JobText(ns))
	}
	if more := len(ids) - named; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	if n := len(parts); n > 1 {
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
	return parts[0]
}

// preemptedFor are the allocations that were taken back for some.
func preemptedFor(allocs []*structs.AllocListStub) (ids []string) {
	for _, a := range allocs {
		ids = append(ids, a.PreemptedAllocations...)
	}
	return ids
}

// took prints which allocations were preempted for those that are new to the monitor.
func (m *monitor) took(ctx context.Context, allocs []*structs.AllocListStub) {
	var ids []string
	for _, a := range allocs {
		if _, known := m.seen[a.ID]; !known {
			ids = append(ids, a.PreemptedAllocations...)
		}
	}
	if text := m.e.preemptedText(ctx, ids, m.ns); text != "" {
		m.line("Preempted %s", text)
	}
}
