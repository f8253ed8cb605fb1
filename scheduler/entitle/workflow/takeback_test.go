package workflow

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawParts returns parts with borrowers, of cores only or of all resources.
func drawParts(t *rapid.T, draw *rapid.Generator[Amounts]) []PartState {
	parts := make([]PartState, rapid.IntRange(1, 4).Draw(t, "parts"))
	for p := range parts {
		parts[p].Idle = draw.Draw(t, "idle")
		for i := range rapid.IntRange(0, 5).Draw(t, "borrowers") {
			parts[p].Borrowers = append(parts[p].Borrowers, Borrower{
				ID: fmt.Sprintf("%d-%d", p, i), Lend: rapid.IntRange(0, 3).Draw(t, "lend"), Uses: draw.Draw(t, "uses"),
				Since: rapid.Int64Range(0, 5).Draw(t, "since"),
			})
		}
	}
	return parts
}

// after returns what is at hand in each part once some have left, and before any instance is placed; and those who left.
func after(parts []PartState, victims []string) (left []Amounts, gone []choice) {
	for p := range parts {
		left = append(left, parts[p].Idle)
		for i, b := range parts[p].Borrowers {
			if slices.Contains(victims, b.ID) {
				left[p] = left[p].Plus(b.Uses)
				gone = append(gone, choice{p, i})
			}
		}
	}
	return left, gone
}

func TestTakeBackProperty(t *testing.T) {
	complete, taken := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		draw := drawAmounts(6)
		if rapid.Bool().Draw(t, "cores only") {
			draw = rapid.Map(rapid.Int64Range(0, 4), cores)
		}
		parts := drawParts(t, draw)
		stage := drawStage(6, len(parts)).Draw(t, "stage")
		shares := rapid.SliceOfN(rapid.Int64Range(0, 3), 0, 3).Draw(t, "shares")
		r := TakeBack(parts, stage, shares)
		left, gone := after(parts, r.Victims)
		if len(gone) != len(r.Victims) {
			t.Fatalf("victims %v are not all there, or twice", r.Victims)
		}
		idle, whole := make([]Amounts, len(parts)), make([]Amounts, len(parts))
		for p := range parts {
			idle[p], whole[p] = parts[p].Idle, parts[p].Idle
			for _, b := range parts[p].Borrowers {
				whole[p] = whole[p].Plus(b.Uses)
			}
		}
		if Packs(idle, stage) && len(r.Victims) > 0 || !r.Complete && Packs(whole, stage) || r.Complete && !exists(whole, stage) {
			t.Fatalf("%+v of %+v for %+v", r, parts, stage)
		}
		if r.Complete == slices.Contains(r.Assigned, -1) || len(r.Assigned) != len(stage) {
			t.Fatalf("%+v", r)
		}
		for i, p := range r.Assigned {
			if p >= 0 {
				left[p] = left[p].Minus(stage[i].Needs)
				if !stage[i].mayUse(p) || !(Amounts{}).Fits(left[p]) {
					t.Fatalf("instance %d of %+v does not fit: %+v of %+v", i, stage, r, parts)
				}
			}
		}
		for _, c := range gone { // none of them could stay beside all that stay
			if parts[c.part].Borrowers[c.borrower].Uses.Fits(left[c.part]) {
				t.Fatalf("%+v could stay: %+v of %+v for %+v", c, r, parts, stage)
			}
		}
		if again := TakeBack(parts, stage, shares); !slices.Equal(again.Assigned, r.Assigned) || !slices.Equal(again.Victims, r.Victims) {
			t.Fatalf("%+v, then %+v", r, again)
		}
		if r.Complete {
			complete, taken = complete+1, taken+len(gone)
		}
	})
	if complete == 0 || taken == 0 {
		t.Errorf("%d complete, %d taken back", complete, taken)
	}
}

// For one instance and one resource the fewest leave that could, over all sets of borrowers of all parts.
func TestTakeBackFewestProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := drawParts(t, rapid.Map(rapid.Int64Range(0, 4), cores))
		need := rapid.Int64Range(0, 12).Draw(t, "need")
		fewest := -1
		for p := range parts {
			for set := range 1 << len(parts[p].Borrowers) {
				left, n := parts[p].Idle.Cores, 0
				for i, b := range parts[p].Borrowers {
					if set>>i&1 == 1 {
						left, n = left+b.Uses.Cores, n+1
					}
				}
				if left >= need && (fewest < 0 || n < fewest) {
					fewest = n
				}
			}
		}
		r := TakeBack(parts, stageOf(need), []int64{1, 2, 1})
		if r.Complete != (fewest >= 0) || r.Complete && len(r.Victims) != fewest {
			t.Fatalf("%d for %+v: %+v, the fewest are %d", need, parts, r, fewest)
		}
	})
}

// In one part with borrowers of one core each, what each lend loses is exactly what stays divided anew.
func TestTakeBackFairProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shares := rapid.SliceOfN(rapid.Int64Range(0, 3), 1, 4).Draw(t, "shares")
		lends := rapid.SliceOfN(rapid.IntRange(0, len(shares)-1), 1, 12).Draw(t, "lends")
		need := rapid.IntRange(0, len(lends)).Draw(t, "need")
		borrowers, lent := singles(len(lends), lends...), make([]int64, len(shares))
		for _, b := range borrowers {
			lent[b.Lend]++
		}
		want := slices.Clone(lent)
		if slices.Max(shares) == 0 {
			for i, rest := 0, int64(need); i < len(want); i++ {
				less := min(want[i], rest)
				want[i], rest = want[i]-less, rest-less
			}
		} else {
			all := make([]Lend, len(shares))
			for i := range all {
				all[i] = Lend{Share: shares[i], Wants: lent[i]}
			}
			want = Due(int64(len(lends)-need), all)
		}
		r := TakeBack([]PartState{{Borrowers: borrowers}}, stageOf(slices.Repeat([]int64{1}, need)...), shares)
		stay := slices.Clone(lent)
		for _, b := range borrowers {
			if slices.Contains(r.Victims, b.ID) {
				stay[b.Lend]--
			}
		}
		if !slices.Equal(stay, want) {
			t.Fatalf("%d of %v lent taken back by %v: %v stay, want %v", need, lent, shares, stay, want)
		}
	})
}

// A whole workflow, with borrowers that come and leave as they like: reserved are always what the stage uses, what is lent and
// what idles, and each stage starts, since the reservation holds it.
func TestConservationProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfN(rapid.Map(rapid.Int64Range(6, 16), cores), 2, 5).Draw(t, "nodes")
		size := rapid.Map(rapid.Int64Range(1, 6), cores)
		stages := make([][]Instance, rapid.IntRange(1, 5).Draw(t, "stages"))
		for s := range stages {
			for range rapid.IntRange(1, 6).Draw(t, "instances") {
				stages[s] = append(stages[s], Instance{Needs: size.Draw(t, "needs")})
			}
		}
		packed := Pack(nodes, stages, Amounts{})
		if !packed.Missing.IsZero() {
			return
		}
		parts := make([]PartState, len(packed.Parts))
		for p := range parts {
			parts[p].Idle = packed.Parts[p].Amounts
		}
		n := 0
		for s, stage := range stages {
			r := TakeBack(parts, stage, []int64{2, 1, 0})
			if !r.Complete {
				t.Fatalf("stage %d of %+v does not start: %+v", s, packed, r)
			}
			used := make([]Amounts, len(parts))
			for i, p := range r.Assigned {
				used[p] = used[p].Plus(stage[i].Needs)
			}
			for p := range parts {
				part := &parts[p]
				part.Borrowers = slices.DeleteFunc(part.Borrowers, func(b Borrower) bool {
					gone := slices.Contains(r.Victims, b.ID)
					if gone {
						part.Idle = part.Idle.Plus(b.Uses)
					}
					return gone
				})
				part.Idle = part.Idle.Minus(used[p])
				if b := size.Draw(t, "borrows"); b.Fits(part.Idle) {
					n++
					part.Borrowers = append(part.Borrowers, Borrower{ID: fmt.Sprint(n), Lend: n % 3, Uses: b, Since: int64(n)})
					part.Idle = part.Idle.Minus(b)
				}
				sum := used[p].Plus(part.Idle)
				for _, b := range part.Borrowers {
					sum = sum.Plus(b.Uses)
				}
				if sum != packed.Parts[p].Amounts || !(Amounts{}).Fits(part.Idle) {
					t.Fatalf("stage %d: of %+v are %+v used, lent and idle", s, packed.Parts[p], sum)
				}
				part.Idle = part.Idle.Plus(used[p]) // the stage ends
			}
		}
	})
}
