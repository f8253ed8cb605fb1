package reserve

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/structs"
)

// startUnit is instances of a stage of which none starts unless so many of each group do: those of a gang, or of a job that takes all or nothing.
type startUnit []startGroup

// startGroup is a group of it: its instances are those from first on, next is the one after the last, and least of them start together,
// of which each needs these licenses.
type startGroup struct {
	first, next, least int
	licenses           []structs.RequestedLicense
}

// startUnits returns those of a stage, in the order of its jobs.
func startUnits(s Stage) (list []startUnit) {
	next := 0
	for _, job := range s {
		if job.PerNode() {
			continue
		}
		gangs, at, all := feasible.GangsOf(job), map[*feasible.Gang]int{}, feasible.AllOrNone(job)
		for _, g := range job.TaskGroups {
			gang := gangs[g.Name]
			group := startGroup{next, next + g.Count, g.Count, g.Licenses().List()}
			if next = group.next; gang == nil && !all {
				continue
			}
			if all { // whatever gangs it has
				gang = nil
			} else if of := slices.IndexFunc(gang.Groups, func(m feasible.GangGroup) bool { return m.Group.Name == g.Name }); of >= 0 {
				group.least = gang.Groups[of].Min
			}
			if _, known := at[gang]; !known {
				at[gang] = len(list)
				list = append(list, nil)
			}
			list[at[gang]] = append(list[at[gang]], group)
		}
	}
	return list
}

// short reports whether too few of it are assigned.
func (w startUnit) short(assigned []int) bool {
	return slices.ContainsFunc(w, func(g startGroup) bool {
		n := 0
		for _, part := range assigned[g.first:g.next] {
			if part >= 0 {
				n++
			}
		}
		return n < g.least
	})
}

// licensed takes out of what is left of licenses those of as many of it as start together; false, and none is taken: too few are left. obtainable returns how
// many the stage can have in all.
func (w startUnit) licensed(left map[string]int64, obtainable func(string) int64) bool {
	need := map[string]int64{}
	for _, g := range w {
		for _, r := range g.licenses {
			if _, known := left[r.Name]; !known {
				left[r.Name] = obtainable(r.Name)
			}
			if need[r.Name] += int64(g.least) * r.Count; need[r.Name] > left[r.Name] {
				return false
			}
		}
	}
	for name, n := range need { // order does not matter: each by itself
		left[name] -= n
	}
	return true
}

// leaveOut leaves out what more of it is than starts together, or, if that is out already, all of it; false: all of it is out.
func (w startUnit) leaveOut(out []bool) (more bool) {
	set := func(from func(startGroup) int) {
		for _, g := range w {
			for i := from(g); i < g.next; i++ {
				more, out[i] = more || !out[i], true
			}
		}
	}
	if set(func(g startGroup) int { return g.first + g.least }); !more {
		set(func(g startGroup) int { return g.first })
	}
	return more
}

// takeBack assigns a stage to parts and takes back for it. Nobody leaves for a gang, or for a job that takes all or nothing, of which too few have room, or
// licenses, even so: it is left out, the last named first, and what follows is decided without it. It returns the jobs of which any is left.
func (t *taking) takeBack(parts []workflow.PartState, s Stage, stage []workflow.Instance, shares []int64) (workflow.Reclaim, Stage) {
	gangs, units, out := t.gangs([]Stage{s}), startUnits(s), make([]bool, len(stage))
	obtainable := func(name string) int64 { return t.w.Licenses().Obtainable(name, t.key) }
	for {
		reclaim := takeBackOf(parts, stage, gangs, shares, out)
		var short []startUnit
		left := map[string]int64{}
		for _, w := range units {
			in := slices.ContainsFunc(w, func(g startGroup) bool { return slices.Contains(out[g.first:g.next], false) })
			if in && (w.short(reclaim.Assigned) || !w.licensed(left, obtainable)) {
				short = append(short, w)
			}
		}
		if len(short) == 0 {
			return reclaim, startOf(s, out)
		}
		for _, w := range short[len(short)-max(1, len(short)/2):] { // of many not one by one: each time costs as much as a stage
			w.leaveOut(out)
		}
	}
}

// startOf returns the jobs of a stage that are not left out whole.
func startOf(s Stage, out []bool) (list Stage) {
	for _, job := range s {
		n := 0
		if !job.PerNode() {
			n = job.Instances()
		}
		if n == 0 || slices.Contains(out[:n], false) {
			list = append(list, job)
		}
		out = out[n:]
	}
	return list
}

// takeBackOf takes back for those of a stage that are not left out.
func takeBackOf(parts []workflow.PartState, stage []workflow.Instance, gangs workflow.Gangs, shares []int64, out []bool) workflow.Reclaim {
	if !slices.Contains(out, true) {
		return workflow.TakeBackGangs(parts, stage, gangs, shares)
	}
	var some []workflow.Instance
	at, of := make([]int, len(stage)), workflow.Gangs{Levels: gangs.Levels}
	for i := range stage {
		if at[i] = -1; !out[i] {
			at[i], some = len(some), append(some, stage[i])
		}
	}
	left := func(members []int) (list []int) {
		for _, m := range members {
			if at[m] >= 0 {
				list = append(list, at[m])
			}
		}
		return list
	}
	for _, g := range gangs.List {
		if g.Members = left(g.Members); len(g.Members) > 0 {
			of.List = append(of.List, g)
		}
	}
	for _, d := range gangs.Distinct {
		if d.Members = left(d.Members); len(d.Members) > 0 {
			of.Distinct = append(of.Distinct, d)
		}
	}
	reclaim := workflow.TakeBackGangs(parts, some, of, shares)
	assigned := make([]int, len(stage))
	for i := range assigned {
		if assigned[i] = -1; at[i] >= 0 {
			assigned[i] = reclaim.Assigned[at[i]]
		}
	}
	reclaim.Assigned, reclaim.Complete = assigned, false
	return reclaim
}
