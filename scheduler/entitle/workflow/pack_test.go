package workflow

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawAmounts returns amounts of up to most of each resource.
func drawAmounts(most int64) *rapid.Generator[Amounts] {
	return rapid.Custom(func(t *rapid.T) Amounts {
		return Amounts{
			CPU: 100 * rapid.Int64Range(0, most).Draw(t, "cpu"), MemoryMB: 7 * rapid.Int64Range(0, most).Draw(t, "memory"),
			Cores: rapid.Int64Range(0, most).Draw(t, "cores"), Devices: rapid.Int64Range(0, most/3).Draw(t, "devices"),
		}
	})
}

// drawStage returns a stage for n nodes, of which an instance may use those of a mask.
func drawStage(most int64, n int) *rapid.Generator[[]Instance] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Instance {
		i := Instance{Needs: drawAmounts(most).Draw(t, "needs")}
		if rapid.IntRange(0, 3).Draw(t, "constrained") == 0 {
			mask := rapid.IntRange(0, 1<<n-1).Draw(t, "mask")
			i.MayUse = func(node int) bool { return mask>>node&1 == 1 }
		}
		return i
	}), 0, 6)
}

// exists reports whether a stage fits into amounts, by trying everything.
func exists(left []Amounts, stage []Instance) bool {
	if len(stage) == 0 {
		return true
	}
	for n := range left {
		if stage[0].Needs.Fits(left[n]) && stage[0].mayUse(n) {
			rest := slices.Clone(left)
			rest[n] = rest[n].Minus(stage[0].Needs)
			if exists(rest, stage[1:]) {
				return true
			}
		}
	}
	return false
}

func TestPackProperty(t *testing.T) {
	packed := 0
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfN(drawAmounts(12), 1, 5).Draw(t, "nodes")
		stages := rapid.SliceOfN(drawStage(6, len(nodes)), 1, 4).Draw(t, "stages")
		want := rapid.OneOf(rapid.Just(Amounts{}), drawAmounts(20)).Draw(t, "want")
		gangs := Gangs{Levels: nodesAndPairs(len(nodes))}
		drawDistinct(t, stages, &gangs)
		got := PackGangs(nodes, stages, gangs, want)
		if gangs.None() {
			got = Pack(nodes, stages, want)
		}
		least := want
		for _, s := range stages {
			least = least.Max(Total(s))
		}
		amounts, on, sum := []Amounts{}, []int{}, Amounts{}
		for _, p := range got.Parts {
			if slices.Contains(on, p.Node) || !p.Amounts.Fits(nodes[p.Node]) {
				t.Fatalf("part %+v of %+v", p, got)
			}
			amounts, on, sum = append(amounts, p.Amounts), append(on, p.Node), sum.Plus(p.Amounts)
		}
		if !got.Missing.IsZero() {
			if all := slices.Concat(stages...); len(all) > 0 && gangs.None() && least.Fits(total(nodes)) && !slices.ContainsFunc(stages, func(s []Instance) bool { return len(s) > 1 || constrained(s) }) &&
				exists(nodes, all) {
				t.Fatalf("misses %+v, although single instances fit beside each other", got.Missing)
			}
			return
		}
		packed++
		if !least.Fits(sum) || got.Enlarged != sum.Minus(least) {
			t.Fatalf("reserved %+v, wanted %+v, enlarged %+v", sum, least, got.Enlarged)
		}
		for i, s := range stages {
			onto, of := onParts(s, on), gangs.of(i, on)
			if _, ok := fitGangs(amounts, onto, of); !ok || !existsTogether(amounts, onto, of) {
				t.Fatalf("stage %+v does not pack into %+v", s, got)
			}
		}
	})
	if packed == 0 {
		t.Error("nothing was ever packed")
	}
}

func constrained(stage []Instance) bool {
	return slices.ContainsFunc(stage, func(i Instance) bool { return i.MayUse != nil })
}

// What Packs finds exists, and nearly all that exists is found.
func TestPacksProperty(t *testing.T) {
	there, missed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(drawAmounts(12), 1, 4).Draw(t, "parts")
		stage := drawStage(6, len(parts)).Draw(t, "stage")
		assigned, ok := fit(parts, stage)
		if exists(parts, stage) {
			there++
			if !ok {
				missed++
			}
		} else if ok {
			t.Fatalf("%+v does not fit into %+v, but was assigned %v", stage, parts, assigned)
		}
	})
	if there == 0 || missed*20 > there {
		t.Errorf("%d of %d that fit were not found", missed, there)
	}
}

// What Pack reports as missing suffices: with it where it is needed everything packs.
func TestPackMissingProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		free := drawAmounts(8).Draw(t, "free")
		stage := drawStage(6, 1).Draw(t, "stage")
		for i := range stage {
			stage[i].MayUse = nil
		}
		got := Pack([]Amounts{free}, [][]Instance{stage}, Amounts{})
		if want := Total(stage).Lacking(free); got.Missing != want {
			t.Fatalf("missing %+v, want %+v", got.Missing, want)
		}
	})
}

// bigStages returns 5 stages of 200 instances, and nodes.
func bigStages(nodes int, constrained bool) ([]Amounts, [][]Instance) {
	r := rand.New(rand.NewPCG(1, 2))
	free := make([]Amounts, nodes)
	for i := range free {
		free[i] = Amounts{CPU: 64000 + 1000*r.Int64N(64), MemoryMB: 256000 + 1000*r.Int64N(256), DiskMB: 1e6, Cores: 8 + r.Int64N(56), Devices: r.Int64N(9)}
	}
	stages := make([][]Instance, 5)
	for s := range stages {
		for range 200 {
			i := Instance{Needs: Amounts{CPU: 1000 + 1000*r.Int64N(30), MemoryMB: 1000 + 1000*r.Int64N(100), DiskMB: 300, Cores: r.Int64N(16), Devices: r.Int64N(5)}}
			if rack := r.IntN(4); constrained {
				i.MayUse = func(node int) bool { return node%4 != rack }
			}
			stages[s] = append(stages[s], i)
		}
	}
	return free, stages
}

// Of 1,000 nodes few are used: not many more than the largest stage would need if it could be cut into pieces.
func TestPackFewNodes(t *testing.T) {
	free, stages := bigStages(1000, false)
	got := Pack(free, stages, Amounts{})
	var least, most Amounts
	for _, s := range stages {
		least = least.Max(Total(s))
	}
	parts := make([]Amounts, len(got.Parts))
	for p := range parts {
		parts[p] = got.Parts[p].Amounts
	}
	for s := range stages {
		if !Packs(parts, stages[s]) {
			t.Errorf("stage %d does not pack into the parts", s)
		}
	}
	for _, n := range free {
		most = most.Max(n)
	}
	bound := 0.0
	for r := range resources {
		bound = max(bound, float64(least.of(r))/float64(most.of(r)))
	}
	if n := float64(len(got.Parts)); !got.Missing.IsZero() || n > 1.25*bound+1 {
		t.Errorf("%d nodes are used where at least %.1f are needed; missing %+v, enlarged %+v", len(got.Parts), bound, got.Missing, got.Enlarged)
	}
}

// BenchmarkPack packs 5 stages of 200 instances on nodes; the bound is 20 ms on 1,000.
func BenchmarkPack(b *testing.B) {
	for _, nodes := range []int{1000, 10000} {
		for _, constrained := range []bool{false, true} {
			b.Run(fmt.Sprintf("nodes=%d/constrained=%v", nodes, constrained), func(b *testing.B) {
				free, stages := bigStages(nodes, constrained)
				b.ReportAllocs()
				for b.Loop() {
					if got := Pack(free, stages, Amounts{}); !got.Missing.IsZero() {
						b.Fatalf("missing %+v", got.Missing)
					}
				}
			})
		}
	}
}

// BenchmarkPackMissing packs them on nodes that hold a twentieth of it.
func BenchmarkPackMissing(b *testing.B) {
	free, stages := bigStages(1000, false)
	for n := range free {
		free[n] = Amounts{CPU: 1000, MemoryMB: 2000, DiskMB: 300, Cores: 1}
	}
	b.ReportAllocs()
	for b.Loop() {
		if got := Pack(free, stages, Amounts{}); got.Missing.IsZero() {
			b.Fatal("nothing is missing")
		}
	}
}

// BenchmarkTakeBack places a stage of 200 instances into its reservation, all of which is lent.
func BenchmarkTakeBack(b *testing.B) {
	free, stages := bigStages(1000, false)
	packed := Pack(free, stages, Amounts{})
	parts := make([]PartState, len(packed.Parts))
	for p := range parts {
		amounts := packed.Parts[p].Amounts
		for i := range 8 {
			n := int64(i)
			share := Amounts{CPU: (amounts.CPU + n) / 8, MemoryMB: (amounts.MemoryMB + n) / 8, DiskMB: (amounts.DiskMB + n) / 8,
				Cores: (amounts.Cores + n) / 8, Devices: (amounts.Devices + n) / 8}
			parts[p].Borrowers = append(parts[p].Borrowers, Borrower{ID: fmt.Sprint(p, i), Lend: i % 3, Uses: share, Since: n})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if r := TakeBack(parts, stages[0], []int64{2, 1, 1}); !r.Complete {
			b.Fatal("the stage does not fit")
		}
	}
}

// The smallest node that has all that is needed is chosen whatever the number is: a third of it thrice is not always 1 in floats.
func TestPackExact(t *testing.T) {
	for n := int64(1); n < 200; n++ {
		if got := Pack([]Amounts{cores(n + 1), cores(n)}, [][]Instance{stageOf(n)}, Amounts{}); len(got.Parts) != 1 || got.Parts[0].Node != 1 {
			t.Errorf("%d cores: %+v", n, got)
		}
	}
}

// An instance that needs nothing is missing, too, where it may use no node, by itself and beside others, and in a gang.
func TestPackNeedsNothing(t *testing.T) {
	nowhere := Instance{MayUse: func(int) bool { return false }}
	nodes, one := []Amounts{cores(2), cores(2)}, Gangs{Levels: [][]int{{0, 1}}, List: []Gang{{Members: []int{0}}}}
	for _, gangs := range []Gangs{{}, one} {
		for _, stage := range [][]Instance{{nowhere}, {nowhere, {Needs: cores(1)}}} {
			if got := PackGangs(nodes, [][]Instance{stage}, gangs, Amounts{}); got.Missing.IsZero() {
				t.Errorf("%d instances, %d gangs: %+v", len(stage), len(gangs.List), got)
			}
		}
		if got := PackGangs(nodes, [][]Instance{{{}}}, gangs, Amounts{}); !got.Missing.IsZero() {
			t.Errorf("one that may use both, %d gangs: %+v", len(gangs.List), got)
		}
	}
}

// TestCoresAreReservedWithTheirMHz: what is stated beside the stages is reserved so that it can be used: a core with its MHz on its node, and MHz beside those where
// the parts are, as far as there is room.
func TestCoresAreReservedWithTheirMHz(t *testing.T) {
	stages := [][]Instance{{{Needs: Amounts{CPU: 4000, Cores: 4}}}}
	for _, c := range []struct {
		nodes []Amounts
		want  Amounts
		parts []Part
	}{
		{[]Amounts{{CPU: 6000, Cores: 4}, {CPU: 4000, Cores: 4}}, Amounts{CPU: 5700, Cores: 5}, []Part{{0, Amounts{CPU: 4700, Cores: 4}}, {1, Amounts{CPU: 1000, Cores: 1}}}},
		{[]Amounts{{CPU: 4500, Cores: 4}, {CPU: 4000, Cores: 4}}, Amounts{CPU: 5700, Cores: 5}, []Part{{0, Amounts{CPU: 4500, Cores: 4}}, {1, Amounts{CPU: 1200, Cores: 1}}}},
		{[]Amounts{{CPU: 4000, Cores: 4}, {CPU: 2500, Cores: 4}}, Amounts{CPU: 6500, Cores: 7}, []Part{{0, Amounts{CPU: 4000, Cores: 4}}, {1, Amounts{CPU: 2500, Cores: 3}}}},
		{[]Amounts{{CPU: 8000, Cores: 8}, {CPU: 2500, Cores: 4}}, Amounts{CPU: 6700, Cores: 6}, []Part{{0, Amounts{CPU: 6700, Cores: 6}}}},
		{[]Amounts{{CPU: 4000, Cores: 4}, {CPU: 100, Cores: 4}, {CPU: 2000}}, Amounts{CPU: 5000, Cores: 5}, []Part{{0, Amounts{CPU: 4000, Cores: 4}}, {1, Amounts{CPU: 100, Cores: 1}}, {2, Amounts{CPU: 900}}}},
	} {
		got := PackBeside(c.nodes, nil, stages, Gangs{}, c.want, 1000)
		if !got.Missing.IsZero() || !got.Enlarged.IsZero() || !slices.Equal(got.Parts, c.parts) {
			t.Errorf("%+v of %+v: %+v, want %+v", c.want, c.nodes, got, c.parts)
		}
	}
}

// TestCoresWithTheirMHzProperty: what may be reserved may be reserved with the MHz of cores on their nodes as far as may be, too.
func TestCoresWithTheirMHzProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfN(drawAmounts(12), 1, 5).Draw(t, "nodes")
		stages := rapid.SliceOfN(drawStage(6, len(nodes)), 1, 3).Draw(t, "stages")
		want := drawAmounts(20).Draw(t, "want")
		without, with := PackBeside(nodes, nil, stages, Gangs{}, want, 0), PackBeside(nodes, nil, stages, Gangs{}, want, 100)
		if !without.Missing.IsZero() {
			return
		}
		if !with.Missing.IsZero() {
			t.Fatalf("%+v, without the cores' MHz %+v", with, without)
		}
		cores := func(p *Packing) (usable int64) {
			for _, part := range p.Parts {
				usable += min(part.Amounts.Cores, part.Amounts.CPU/100)
			}
			return usable
		}
		if with.Enlarged.IsZero() && without.Enlarged.IsZero() && cores(&with) < cores(&without) {
			t.Fatalf("%d of %+v have their MHz, and %d of %+v", cores(&with), with, cores(&without), without)
		}
	})
}
