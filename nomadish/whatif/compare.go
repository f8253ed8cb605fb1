package whatif

import (
	"maps"
	"slices"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// compare lays two futures side by side.
func compare(out *structs.WhatIf, before, after *run) {
	keys := append(before.lines(), after.lines()...)
	slices.SortFunc(keys, groupKey.compare)
	out.Groups = []*structs.WhatIfGroup{}
	from, to := time.Unix(0, out.Time), time.Unix(0, out.Until)
	out.Before, out.After = before.future(from, to), after.future(from, to)
	for _, k := range slices.Compact(keys) {
		g := groupOf(k, before, after)
		judge(g, out.Before.EndedAt, out.After.EndedAt)
		out.Groups = append(out.Groups, g)
	}
}

func groupOf(k groupKey, before, after *run) *structs.WhatIfGroup {
	g := &structs.WhatIfGroup{Namespace: k.namespace, JobID: k.job, Group: k.group, Before: before.startOf(k), After: after.startOf(k)}
	for _, r := range []*run{before, after} {
		if w := r.known[k]; w != nil {
			g.Project = w.project
		}
	}
	return g
}

// judge states what the changes do to the start of a group, where one or both of the futures ended at a time (0: it did not, and what it does not state does
// not happen).
func judge(g *structs.WhatIfGroup, before, after int64) {
	switch b, a := g.Before, g.After; {
	case b == nil && before > 0 && a.Since >= before, a == nil && after > 0 && b.Since >= after:
		g.Verdict = structs.WhatIfUnknown // the other one may come to it
	case b == nil:
		g.Verdict = structs.WhatIfNew
	case a == nil:
		g.Verdict = structs.WhatIfGone
	case b.All == 0 && a.All == 0:
		if g.Verdict = structs.WhatIfSame; before+after > 0 {
			g.Verdict = structs.WhatIfUnknown
		}
	case b.All == 0 && before == 0:
		g.Verdict = structs.WhatIfStarts
	case a.All == 0 && after == 0:
		g.Verdict = structs.WhatIfNever
	case b.All == 0:
		shifted(g, min(0, a.All-before))
	case a.All == 0:
		shifted(g, max(0, after-b.All))
	default:
		switch by := time.Duration(a.All - b.All); {
		case by.Abs() < time.Second:
			g.Verdict = structs.WhatIfSame
		case by < 0:
			g.Shift, g.Verdict = by, structs.WhatIfEarlier
		default:
			g.Shift, g.Verdict = by, structs.WhatIfLater
		}
	}
}

// shifted states that a group that starts in one future only starts at least so much later with the changes; earlier if it is below zero. 0: nothing is known of
// that.
func shifted(g *structs.WhatIfGroup, by int64) {
	g.Shift, g.AtLeast = time.Duration(by), by != 0
	switch {
	case by < 0:
		g.Verdict = structs.WhatIfEarlier
	case by > 0:
		g.Verdict = structs.WhatIfLater
	default:
		g.Verdict = structs.WhatIfUnknown
	}
}

// startOf returns when a group starts; nil: nothing of it waits.
func (r *run) startOf(k groupKey) *structs.WhatIfStart {
	w := r.known[k]
	if w == nil || w.waits == 0 {
		return nil
	}
	s := &structs.WhatIfStart{Waits: w.waits, Since: w.since.UnixNano()}
	if len(w.starts) > 0 {
		s.First = w.starts[0].UnixNano()
	}
	if all := w.last(); !all.IsZero() {
		s.All = all.UnixNano()
	} else {
		s.Why = r.Why(structs.NamespacedID{Namespace: k.namespace, ID: k.job}, k.group, s.First == 0)
	}
	return s
}

// future returns what became of a future between two times.
func (r *run) future(from, to time.Time) structs.WhatIfFuture {
	f := structs.WhatIfFuture{
		Ended: r.Ended(), Usage: r.usage.series(from, to), Mean: r.usage.mean(from, to), Taken: r.taken.list, TakenMore: r.taken.more,
		Displaced: r.displaced.list, DisplacedMore: r.displaced.more, Shortfalls: r.lack.list(),
	}
	if f.Ended != "" {
		f.EndedAt = r.Now().UnixNano()
	}
	f.Namespaces, f.Projects = r.waits()
	if f.Taken == nil {
		f.Taken = []structs.WhatIfTaken{}
	}
	if f.Displaced == nil {
		f.Displaced = []structs.WhatIfTaken{}
	}
	f.Workflows = []structs.WhatIfWorkflow{}
	for w := range r.Store().Snapshot().Workflows(nil).List(structs.AllNamespaces, "", false) {
		if !w.Alive() && w.EndTime < from.UnixNano() {
			continue
		}
		line := structs.WhatIfWorkflow{Namespace: w.Namespace, ID: w.ID, Run: w.Run, State: w.State, Start: w.StartTime, End: w.EndTime, Stages: []structs.WhatIfStage{}}
		for _, s := range w.Stages {
			line.Stages = append(line.Stages, structs.WhatIfStage{Name: s.Name, State: s.State, Start: s.Start, End: s.End})
		}
		f.Workflows = append(f.Workflows, line)
	}
	return f
}

// waits returns how long instances waited, by namespace and by project.
func (w *watch) waits() (namespaces, projects []structs.WhatIfWaits) {
	byNamespace, byProject := map[string]*spread{}, map[string]*spread{}
	for k, g := range w.known { // order does not matter: sorted below
		if g.waits == 0 {
			continue
		}
		add(byNamespace, k.namespace, g)
		if g.project != "" {
			add(byProject, g.project, g)
		}
	}
	return listed(byNamespace), listed(byProject)
}

// spread is how long instances waited.
type spread struct {
	waits int
	took  []time.Duration
}

func add(to map[string]*spread, name string, g *waiter) {
	s := to[name]
	if s == nil {
		s = &spread{}
		to[name] = s
	}
	s.waits += g.waits
	for i, t := range g.starts[:min(len(g.starts), g.waits)] {
		s.took = append(s.took, t.Sub(g.waitsSince(i)))
	}
}

func listed(of map[string]*spread) []structs.WhatIfWaits {
	out := []structs.WhatIfWaits{}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		s := of[name]
		w := structs.WhatIfWaits{Of: name, Waits: s.waits, Started: len(s.took)}
		slices.Sort(s.took)
		if n := len(s.took); n > 0 {
			sum := 0.0
			for _, d := range s.took {
				sum += d.Seconds()
			}
			w.Mean = time.Duration(sum / float64(n) * 1e9).Round(time.Millisecond)
			w.P95, w.Max = s.took[(95*n+99)/100-1], s.took[n-1]
		}
		out = append(out, w)
	}
	return out
}
