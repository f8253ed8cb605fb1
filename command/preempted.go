package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/structs"
)

// Bounds of finding the jobs that lost allocations: so many allocations are looked up one by one, more are found among so many that
// were preempted at all. Those that are not found are counted.
const (
	preemptedRequested = 32
	preemptedListed    = 5000
)

// preemptedText returns which allocations were preempted: "3 allocations of job
// "night"". ns is the taker's namespace; jobs of others are named with theirs. Empty: none
// was.
func (e *env) preemptedText(ctx context.Context, ids []string, ns string) string {
	if len(ids) == 0 {
		return ""
	}
	counts := map[structs.NamespacedID]int{}
	var jobs []structs.NamespacedID // as they come
	named := 0
	of := jobsOfPreempted(ctx, e.client.Allocations(), ids)
	for _, id := range ids {
		job, found := of[id]
		if !found {
			continue // it was collected: it is counted with the others
		}
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

// jobsOfPreempted returns the jobs of the preempted allocations that are still known.
func jobsOfPreempted(ctx context.Context, allocs api.Allocations, ids []string) map[string]structs.NamespacedID {
	of := map[string]structs.NamespacedID{}
	if len(ids) > preemptedRequested {
		q := &api.Query{Namespace: structs.AllNamespaces, Filter: `PreemptedByAllocation != ""`, PerPage: preemptedListed}
		list, _, err := allocs.List(ctx, q)
		if err != nil {
			return of
		}
		for _, a := range list {
			of[a.ID] = structs.NamespacedID{ID: a.JobID, Namespace: a.Namespace}
		}
		return of
	}
	q := &api.Query{Namespace: structs.AllNamespaces}
	for _, id := range ids {
		if a, _, err := allocs.Info(ctx, id, q); err == nil {
			of[id] = structs.NamespacedID{ID: a.JobID, Namespace: a.Namespace}
		}
	}
	return of
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
