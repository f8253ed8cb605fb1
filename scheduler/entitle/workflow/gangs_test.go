package workflow

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawGangs returns gangs of some instances of stages on n nodes, and such as have to be in distinct domains.
func drawGangs(t *rapid.T, n int, stages [][]Instance) (out Gangs) {
	out.Levels = nodesAndPairs(n)
	for s, stage := range stages {
		for next := 0; next < len(stage); {
			last := min(next+rapid.IntRange(1, 3).Draw(t, "members"), len(stage))
			if rapid.Bool().Draw(t, "gang") {
				gang := Gang{Stage: s, Level: rapid.IntRange(0, 1).Draw(t, "level")}
				for ; next < last; next++ {
					gang.Members = append(gang.Members, next)
				}
				out.List = append(out.List, gang)
			}
			next = max(next, last)
		}
	}
	drawDistinct(t, stages, &out)
	return out
}

// nodesAndPairs returns two levels of n nodes: nodes, and pairs of nodes, of which the last node is in none.
func nodesAndPairs(n int) [][]int {
	levels := make([][]int, 2)
	for node := range n {
		pair := node / 2
		if node == n-1 {
			pair = -1
		}
		levels[0], levels[1] = append(levels[0], node), append(levels[1], pair)
	}
	return levels
}

// of returns the gangs of one stage, as if it were the only one, on parts that are on nodes.
func (g Gangs) of(stage int, nodes []int) (out Gangs) {
	out = g.on(nodes)
	out.List, out.Distinct = nil, nil
	for _, d := range g.Distinct {
		if d.Stage == stage {
			d.Stage = 0
			out.Distinct = append(out.Distinct, d)
		}
	}
	for _, gang := range g.List {
		if gang.Stage == stage {
			gang.Stage = 0
			out.List = append(out.List, gang)
		}
	}
	return out
}

// existsTogether reports whether a stage fits into amounts with its gangs in one domain each, and no more of others in one than may be, by trying everything.
func existsTogether(left []Amounts, stage []Instance, gangs Gangs) bool {
	return existsBeside(left, stage, gangs, nil)
}

// existsBeside does so beside the first instances, which are assigned.
func existsBeside(left []Amounts, stage []Instance, gangs Gangs, assigned []int) bool {
	if gangs.broken(assigned) != "" {
		return false
	}
	if len(assigned) == len(stage) {
		return true
	}
	i := &stage[len(assigned)]
	for n := range left {
		if i.Needs.Fits(left[n]) && i.mayUse(n) {
			rest := slices.Clone(left)
			rest[n] = rest[n].Minus(i.Needs)
			if existsBeside(rest, stage, gangs, append(slices.Clone(assigned), n)) {
				return true
			}
		}
	}
	return false
}

// broken says what the first instances of the only stage, which are assigned, break.
func (g Gangs) broken(assigned []int) string {
	for _, gang := range g.List {
		first := -1
		for _, m := range gang.Members {
			if m >= len(assigned) {
				continue
			}
			domain := g.Levels[gang.Level][assigned[m]]
			if first < 0 {
				first = domain
			}
			if domain < 0 || domain != first {
				return fmt.Sprintf("gang %+v is not in one domain", gang)
			}
		}
	}
	for _, d := range g.Distinct {
		count := map[int]int{}
		for _, m := range d.Members {
			if m >= len(assigned) {
				continue
			}
			domain := g.Levels[d.Level][assigned[m]]
			if count[domain]++; domain < 0 || count[domain] > d.Most {
				return fmt.Sprintf("%+v are not in distinct domains", d)
			}
		}
	}
	return ""
}

// Stages pack with their gangs together, and whoever borrows what they pack into leaves so that they are together.
func TestPackGangsProperty(t *testing.T) {
	packed := 0
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfN(drawAmounts(12), 1, 5).Draw(t, "nodes")
		stages := rapid.SliceOfN(drawStage(4, len(nodes)), 1, 3).Draw(t, "stages")
		gangs := drawGangs(t, len(nodes), stages)
		got := PackGangs(nodes, stages, gangs, Amounts{})
		if !got.Missing.IsZero() {
			return
		}
		packed++
		amounts, on := make([]Amounts, len(got.Parts)), make([]int, len(got.Parts))
		for i, p := range got.Parts {
			if amounts[i], on[i] = p.Amounts, p.Node; !p.Amounts.Fits(nodes[p.Node]) {
				t.Fatalf("part %+v", p)
			}
		}
		for s, stage := range stages {
			stage, of := onParts(stage, on), gangs.of(s, on)
			if !existsTogether(amounts, stage, of) {
				t.Fatalf("stage %d does not pack into %+v", s, got)
			}
			parts := make([]PartState, len(amounts))
			for p := range parts {
				if all := amounts[p]; rapid.Bool().Draw(t, "lent") {
					parts[p].Borrowers = []Borrower{{ID: string(rune('a' + p)), Uses: all}}
				} else {
					parts[p].Idle = all
				}
			}
			checkTogether(t, parts, stage, of, TakeBackGangs(parts, stage, of, nil))
		}
	})
	if packed == 0 {
		t.Error("nothing was packed")
	}
}

// checkTogether checks that all of a stage is assigned, each gang to one domain, and that it has room when the victims have left.
func checkTogether(t *rapid.T, parts []PartState, stage []Instance, gangs Gangs, r Reclaim) {
	if !r.Complete {
		t.Fatalf("not all are assigned: %+v", r)
	}
	left := make([]Amounts, len(parts))
	for p := range parts {
		left[p] = parts[p].Idle
		for _, b := range parts[p].Borrowers {
			if slices.Contains(r.Victims, b.ID) {
				left[p] = left[p].Plus(b.Uses)
			}
		}
	}
	for i, p := range r.Assigned {
		if left[p] = left[p].Minus(stage[i].Needs); !stage[i].mayUse(p) || !(Amounts{}).Fits(left[p]) {
			t.Fatalf("instance %d is assigned to part %d: %+v", i, p, r)
		}
	}
	if what := gangs.broken(r.Assigned); what != "" {
		t.Fatalf("%s: assigned to %v", what, r.Assigned)
	}
}

// Nearly all stages that fit with their gangs together are found to.
func TestFitGangsProperty(t *testing.T) {
	there, missed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(drawAmounts(12), 1, 5).Draw(t, "parts")
		stage := drawStage(6, len(parts)).Draw(t, "stage")
		gangs := drawGangs(t, len(parts), [][]Instance{stage})
		_, ok := fitGangs(parts, stage, gangs)
		if existsTogether(parts, stage, gangs) {
			there++
			if !ok {
				missed++
			}
		} else if ok {
			t.Fatalf("%+v does not fit into %+v with %+v", stage, parts, gangs)
		}
	})
	if there == 0 || missed*20 > there {
		t.Errorf("%d of %d that fit were not found", missed, there)
	}
}

// What gangs of several stages need is reserved in one domain, where others of a stage leave them room, without enlarging the reservation.
func TestPackGangsChooses(t *testing.T) {
	racks := [][]int{{0, 0, 1, 1}}
	gang := func(stage int, members ...int) Gang { return Gang{Stage: stage, Members: members} }
	for _, c := range []struct {
		name   string
		nodes  []int64
		stages [][]Instance
		gangs  []Gang
		want   []int64 // of each node; nil: it is missing
	}{
		{"half of the room in each rack", []int64{2, 2, 2, 2}, [][]Instance{stageOf(2, 2, 2)}, []Gang{gang(0, 0, 1, 2)}, nil},
		{"room in the second rack", []int64{3, 1, 2, 4}, [][]Instance{stageOf(2, 2, 2)}, []Gang{gang(0, 0, 1, 2)}, []int64{0, 0, 2, 4}},
		{"two stages share a rack", []int64{4, 4, 4, 4}, [][]Instance{stageOf(2, 2), stageOf(4, 4)}, []Gang{gang(0, 0, 1), gang(1, 0, 1)}, []int64{4, 4, 0, 0}},
		{"two gangs of a stage", []int64{3, 3, 4, 4}, [][]Instance{stageOf(3, 3, 4, 4)}, []Gang{gang(0, 0, 1), gang(0, 2, 3)}, []int64{3, 3, 4, 4}},
		{"another fits into the first rack only", []int64{8, 0, 2, 2}, [][]Instance{stageOf(2, 2, 8)}, []Gang{gang(0, 0, 1)}, []int64{8, 0, 2, 2}},
		{"enlarged least", []int64{4, 4, 4, 5}, [][]Instance{stageOf(4, 4), stageOf(5, 3)}, []Gang{gang(0, 0, 1)}, []int64{0, 0, 4, 5}},
	} {
		var nodes []Amounts
		for _, n := range c.nodes {
			nodes = append(nodes, cores(n))
		}
		got := PackGangs(nodes, c.stages, Gangs{Levels: racks, List: c.gangs}, Amounts{})
		of := make([]int64, len(nodes))
		for _, p := range got.Parts {
			of[p.Node] = p.Amounts.Cores
		}
		if c.want == nil && !got.Apart || c.want != nil && (!got.Missing.IsZero() || !slices.Equal(of, c.want)) {
			t.Errorf("%s: %v of %+v, want %v", c.name, of, got, c.want)
		}
	}
}

// gangsOfFour returns so many nodes of so much in racks of 20, and five stages of so many gangs of four of one to eight cores, that require a rack.
func gangsOfFour(count int, each int64, gangs int) (nodes []Amounts, stages [][]Instance, of Gangs) {
	rack := make([]int, count)
	for i := range rack {
		rack[i], nodes = i/20, append(nodes, Amounts{CPU: each, MemoryMB: each, DiskMB: 1e6})
	}
	of.Levels, stages = [][]int{rack}, make([][]Instance, 5)
	for s := range stages {
		for g := range gangs {
			gang, n := Gang{Stage: s}, int64(1+(g*7+s)%8)
			for range 4 {
				gang.Members = append(gang.Members, len(stages[s]))
				stages[s] = append(stages[s], Instance{Needs: Amounts{CPU: n, MemoryMB: n, DiskMB: 1}})
			}
			of.List = append(of.List, gang)
		}
	}
	return nodes, stages, of
}

// Many gangs are found the room that there is, also where they need nine tenths of it.
func TestPackManyGangs(t *testing.T) {
	for _, c := range []struct {
		nodes int
		each  int64
		gangs int
	}{{1000, 12, 50}, {1000, 12, 200}, {100, 12, 60}, {100, 4, 20}} {
		nodes, stages, gangs := gangsOfFour(c.nodes, c.each, c.gangs)
		got := PackGangs(nodes, stages, gangs, Amounts{})
		if c.each == 4 {
			if !got.Apart && got.Missing.IsZero() || gangs.Impossible(nodes, stages) == nil {
				t.Errorf("%d gangs on %d nodes of %d: %+v", c.gangs, c.nodes, c.each, got)
			}
			continue
		}
		parts, on := make([]Amounts, len(got.Parts)), make([]int, len(got.Parts))
		for i, p := range got.Parts {
			parts[i], on[i] = p.Amounts, p.Node
		}
		for s := range stages {
			if _, ok := fitGangs(parts, stages[s], gangs.of(s, on)); !ok {
				t.Errorf("%d gangs on %d nodes of %d: stage %d does not pack", c.gangs, c.nodes, c.each, s)
			}
		}
		reserved := total(parts)
		if !got.Missing.IsZero() || got.Enlarged.CPU*20 > reserved.CPU || gangs.Impossible(nodes, stages) != nil {
			t.Errorf("%d gangs on %d nodes of %d: %+v are missing, enlarged by %+v of %+v", c.gangs, c.nodes, c.each, got.Missing, got.Enlarged, reserved)
		}
	}
}

// TestImpossibleProperty: what is said to be impossible is.
func TestImpossibleProperty(t *testing.T) {
	impossible, together := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfN(drawAmounts(12), 1, 5).Draw(t, "nodes")
		stage := drawStage(5, len(nodes)).Draw(t, "stage")
		gangs := drawGangs(t, len(nodes), [][]Instance{stage})
		there := existsTogether(nodes, stage, gangs)
		if there {
			together++
		}
		if gangs.Impossible(nodes, [][]Instance{stage}) != nil || gangs.Crowded(nodes, [][]Instance{stage}) != nil {
			if impossible++; there {
				t.Fatalf("%+v packs into %+v with %+v", stage, nodes, gangs)
			}
		}
	})
	if impossible == 0 || together == 0 {
		t.Errorf("%d are impossible, %d pack", impossible, together)
	}
}
