package workflow

import (
	"cmp"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// largestRemainder is the oracle of Shares: exact fractions, and the remainders sorted.
func largestRemainder(total int64, shares []int64) []int64 {
	sum := new(big.Int)
	for _, s := range shares {
		sum.Add(sum, big.NewInt(s))
	}
	parts, rest := make([]int64, len(shares)), total
	if sum.Sign() == 0 {
		parts[0] = total
		return parts
	}
	remainders, order := make([]*big.Int, len(shares)), make([]int, len(shares))
	for i, s := range shares {
		product := new(big.Int).Mul(big.NewInt(total), big.NewInt(s))
		quotient, remainder := new(big.Int).QuoRem(product, sum, new(big.Int))
		parts[i], remainders[i], order[i] = quotient.Int64(), remainder, i
		rest -= parts[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return remainders[b].Cmp(remainders[a]) })
	for _, i := range order[:rest] {
		parts[i]++
	}
	return parts
}

func TestSharesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]int64{3, 20, 1 << 40, 1 << 59}).Draw(t, "limit")
		total := rapid.Int64Range(0, limit).Draw(t, "total")
		shares := rapid.SliceOfN(rapid.Int64Range(0, limit), 1, 6).Draw(t, "shares")
		got, want := Shares(total, shares), largestRemainder(total, shares)
		var sum int64
		for _, g := range got {
			sum += g
		}
		if !slices.Equal(got, want) || sum != total {
			t.Fatalf("%d by %v: %v, want %v", total, shares, got, want)
		}
	})
}

// Nobody gets less than it uses nor more than it wants, nothing wanted is left over, and those who could get more or less have parts in
// proportion to their shares, but for one unit each.
func TestDueProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int64Range(0, 60).Draw(t, "total")
		lends := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Lend {
			used := rapid.Int64Range(0, 10).Draw(t, "used")
			return Lend{Share: rapid.Int64Range(0, 4).Draw(t, "share"), Used: used, Wants: used + rapid.Int64Range(0, 30).Draw(t, "more")}
		}), 1, 5).Draw(t, "lends")
		due := Due(total, lends)
		var sum, used, wants int64
		for i, l := range lends {
			if due[i] < l.Used || due[i] > l.Wants {
				t.Fatalf("%d: lend %d of %+v is due %v", total, i, lends, due)
			}
			sum, used, wants = sum+due[i], used+l.Used, wants+l.Wants
		}
		if sum != max(used, min(total, wants)) {
			t.Fatalf("%d: the sum of %v for %+v is %d", total, due, lends, sum)
		}
		for i, a := range lends {
			for j, b := range lends {
				// i gets more than it uses and j less than it wants: so i has not more than its share beside j's.
				if due[i] > a.Used && due[j] < b.Wants && b.Share > 0 && due[i]*b.Share >= due[j]*a.Share+a.Share+b.Share {
					t.Fatalf("%d: lend %d has too much beside %d: %v for %+v", total, i, j, due, lends)
				}
				stated := slices.ContainsFunc(lends, func(l Lend) bool { return l.Share > 0 })
				if !stated && i > j && due[i] > a.Used && due[j] < b.Wants {
					t.Fatalf("%d: lend %d before %d: %v for %+v", total, i, j, due, lends)
				}
			}
		}
	})
}

func TestDueUnused(t *testing.T) {
	f := func(total int64, lends []Lend, want ...int64) {
		t.Helper()
		if got := Due(total, lends); !slices.Equal(got, want) {
			t.Errorf("%d for %+v: %v, want %v", total, lends, got, want)
		}
	}
	f(8, []Lend{{Share: 1, Wants: 9}, {Share: 1, Wants: 2}}, 6, 2)
	f(8, []Lend{{Share: 1, Wants: 9}, {Share: 1, Used: 6, Wants: 9}}, 2, 6)
	f(8, []Lend{{Wants: 5}, {Wants: 9}}, 5, 3)
	f(8, []Lend{{Wants: 9}, {Used: 3, Wants: 9}}, 5, 3)
	f(8, []Lend{{Share: 1, Wants: 5}, {Wants: 9}}, 5, 3)
	f(2, []Lend{{Share: 1, Used: 5}}, 5)
}

func TestMergeProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.Custom(func(t *rapid.T) []License {
			names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 4, rapid.ID[string]).Draw(t, "names")
			var out []License
			for _, n := range slices.Sorted(slices.Values(names)) {
				out = append(out, License{n, rapid.Int64Range(1, 9).Draw(t, n)})
			}
			return out
		})
		stages := rapid.SliceOfN(list, 0, 4).Draw(t, "stages")
		largest, sum := map[string]int64{}, map[string]int64{}
		for _, s := range stages {
			for _, l := range s {
				largest[l.Name], sum[l.Name] = max(largest[l.Name], l.Count), sum[l.Name]+l.Count
			}
		}
		for _, by := range []bool{false, true} {
			want := largest
			if by {
				want = sum
			}
			got, err := Reserve{Sum: by}.Counts(stages)
			sorted := slices.IsSortedFunc(got, func(a, b License) int { return cmp.Compare(a.Name, b.Name) })
			if err != nil || !sorted || len(got) != len(want) {
				t.Fatalf("%v: %v, %v", stages, got, err)
			}
			for _, l := range got {
				if want[l.Name] != l.Count {
					t.Fatalf("%v: %v, want %v", stages, got, want)
				}
			}
		}
	})
}
