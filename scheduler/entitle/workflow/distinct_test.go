package workflow

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawDistinct adds to gangs, which have two levels, such instances of the stages as have to be in distinct domains.
func drawDistinct(t *rapid.T, stages [][]Instance, gangs *Gangs) {
	for s, stage := range stages {
		if len(stage) == 0 || rapid.IntRange(0, 2).Draw(t, "distinct") == 0 {
			continue
		}
		first := rapid.IntRange(0, len(stage)-1).Draw(t, "first")
		d := Distinct{Stage: s, Level: rapid.IntRange(0, 1).Draw(t, "level"), Most: rapid.IntRange(1, 2).Draw(t, "most")}
		for m := first; m < rapid.IntRange(first+1, len(stage)).Draw(t, "last"); m++ {
			d.Members = append(d.Members, m)
		}
		gangs.Distinct = append(gangs.Distinct, d)
	}
}

// TestPackDistinctFinds: nearly all stages that fit with their instances in distinct domains are found to, on nodes that are not reserved yet.
func TestPackDistinctFinds(t *testing.T) {
	there, missed := 0, 0
	find := func(t *rapid.T) {
		nodes := rapid.SliceOfN(drawAmounts(12), 1, 5).Draw(t, "nodes")
		stages := [][]Instance{drawStage(5, len(nodes)).Draw(t, "stage")}
		gangs := Gangs{Levels: nodesAndPairs(len(nodes))}
		drawDistinct(t, stages, &gangs)
		if len(gangs.Distinct) == 0 || !existsTogether(nodes, stages[0], gangs) {
			return
		}
		there++
		if got := PackGangs(nodes, stages, gangs, Amounts{}); !got.Missing.IsZero() {
			missed++
		}
	}
	for range 20 { // of a few alone one that is missed would be too many
		rapid.Check(t, find)
	}
	if there == 0 || missed*10 > there { // 1 of 40 is
		t.Errorf("%d of %d that fit were not found", missed, there)
	}
}

// TestPackDistinct: what has to be on distinct hosts, or in distinct racks, is reserved there, in each stage, and of nodes as few as can be.
func TestPackDistinct(t *testing.T) {
	hosts, racks := 0, 1
	distinct := func(stage, level, most int, members ...int) Distinct {
		return Distinct{Stage: stage, Level: level, Most: most, Members: members}
	}
	for _, c := range []struct {
		name     string
		nodes    []int64
		stages   [][]Instance
		distinct []Distinct
		gangs    []Gang
		want     []int64 // of each node; nil: it is missing
		room     int     // how many of the crowded instances there is room for, -1: none is known to be crowded
	}{
		{"two on two nodes", []int64{8, 8}, [][]Instance{stageOf(1, 1)}, []Distinct{distinct(0, hosts, 1, 0, 1)}, nil, []int64{1, 1}, -1},
		{"others beside them", []int64{4, 4, 4}, [][]Instance{stageOf(2, 2, 2, 1, 1, 1)}, []Distinct{distinct(0, hosts, 1, 3, 4, 5)}, nil, []int64{3, 3, 3}, -1},
		{"two stages share nodes", []int64{8, 8, 8}, [][]Instance{stageOf(1, 1), stageOf(2, 2)}, []Distinct{distinct(0, hosts, 1, 0, 1), distinct(1, hosts, 1, 0, 1)}, nil, []int64{2, 2, 0}, -1},
		{"more than nodes", []int64{8, 8}, [][]Instance{stageOf(1, 1, 1)}, []Distinct{distinct(0, hosts, 1, 0, 1, 2)}, nil, nil, 2},
		{"nodes with room", []int64{8, 8, 1}, [][]Instance{stageOf(2, 2, 2)}, []Distinct{distinct(0, hosts, 1, 0, 1, 2)}, nil, nil, 2},
		{"two in each rack", []int64{8, 0, 8, 0}, [][]Instance{stageOf(1, 1, 1)}, []Distinct{distinct(0, racks, 2, 0, 1, 2)}, nil, []int64{2, 0, 1, 0}, -1},
		{"a gang in a rack of two, on each one", []int64{8, 0, 4, 4}, [][]Instance{stageOf(2, 2)}, []Distinct{distinct(0, hosts, 1, 0, 1)}, []Gang{{Members: []int{0, 1}, Level: racks}}, []int64{0, 0, 2, 2}, -1},
		{"a gang of three in a rack of two, on each one", []int64{8, 8, 8, 8}, [][]Instance{stageOf(2, 2, 2)}, []Distinct{distinct(0, hosts, 1, 0, 1, 2)}, []Gang{{Members: []int{0, 1, 2}, Level: racks}}, nil, -1},
	} {
		var nodes []Amounts
		for _, n := range c.nodes {
			nodes = append(nodes, cores(n))
		}
		gangs := Gangs{Levels: [][]int{[]int{0, 1, 2, 3}[:len(nodes)], []int{0, 0, 1, 1}[:len(nodes)]}, List: c.gangs, Distinct: c.distinct}
		got := PackGangs(nodes, c.stages, gangs, Amounts{})
		of := make([]int64, len(nodes))
		for _, p := range got.Parts {
			of[p.Node] = p.Amounts.Cores
		}
		if c.want == nil && !got.Apart || c.want != nil && (!got.Missing.IsZero() || !slices.Equal(of, c.want)) {
			t.Errorf("%s: %v of %+v, want %v", c.name, of, got, c.want)
		}
		crowded := gangs.Crowded(nodes, c.stages)
		if c.room < 0 != (crowded == nil) || crowded != nil && crowded.Room != c.room {
			t.Errorf("%s: crowded are %+v", c.name, crowded)
		}
		if impossible := gangs.Impossible(nodes, c.stages) != nil; impossible != (c.want == nil && c.gangs != nil) {
			t.Errorf("%s: impossible: %v", c.name, impossible)
		}
	}
}
