package bucket

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestPlaces compares what lanes tell, two at a time, with one comparison after the
// other, and with the exact values where lanes are exact.
func TestPlaces(t *testing.T) {
	value := rapid.OneOf(rapid.Int64Range(-3, 3), rapid.Int64Range(0, 100), rapid.Int64(),
		rapid.Int64Range(math.MaxInt32-3, math.MaxInt32+3), rapid.Int64Range(-1<<40, 1<<40))
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, MaxDims).Draw(t, "width")
		p := newLeaf[int](nil, width)
		p.n = rapid.IntRange(0, fan).Draw(t, "n")
		var need Vector
		for d := range width {
			need[d] = value.Draw(t, "need")
			for i := range fan { // behind n is what stood there once
				p.set(d*fan+i, rapid.OneOf(value, rapid.Just(need[d])).Draw(t, "v"))
			}
		}
		f := newFilter(&need, width)
		got := f.places(&p.cells, 0)
		for i := range fan {
			cut, at := i < p.n, p.vector(i, width)
			for d, n := range need {
				cut = cut && (n <= 0 || lane(at[d]) >= lane(n))
			}
			if got.has(i) != cut {
				t.Fatalf("place %d of %d with %v is told to fit %v: %t", i, p.n, at, need, got.has(i))
			}
			if fits := i < p.n && at.Fits(&need); fits && !cut || cut && f.fits(&p.columns, 0, i) != fits {
				t.Fatalf("place %d with %v fits %v: %t", i, at, need, fits)
			}
		}
		limit := value.Draw(t, "limit")
		upTo := got.upTo(&p.columns, 0, limit)
		for i := range p.n {
			if few := p.at(i) <= limit; few && upTo.has(i) != got.has(i) || !few && limit >= 0 && limit < math.MaxInt32-1 && upTo.has(i) {
				t.Fatalf("%d up to %d: %t", p.at(i), limit, upTo.has(i))
			}
		}
	})
}

// TestColumns does to columns what is done to a list of lists.
func TestColumns(t *testing.T) {
	value := rapid.OneOf(rapid.Int64Range(0, 9), rapid.Int64(), rapid.Just(int64(-1)), rapid.Just(int64(math.MaxInt32)+1))
	rapid.Check(t, func(t *rapid.T) {
		const count = 2
		c := columns{lanes: make([]int32, count*fan)}
		var want [][count]int64
		draw := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "place") }
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			n := len(want)
			switch what := draw(5); {
			case what < 2 && n < fan:
				i := draw(n + 1)
				c.open(i, n)
				want = append(want[:i], append([][count]int64{{}}, want[i:]...)...)
				for d := range count {
					want[i][d] = value.Draw(t, "v")
					c.set(d*fan+i, want[i][d])
				}
			case what == 2 && n > 0:
				i := draw(n)
				c.shut(i, n)
				want = append(want[:i], want[i+1:]...)
			case what == 3: // on to a copy
				was := c
				c = columns{lanes: make([]int32, count*fan)}
				c.copy(&was, n)
			case n > 0: // the second half into others
				half := n / 2
				was := c
				c = columns{lanes: make([]int32, count*fan)}
				c.take(0, &was, half, n-half)
				want = want[half:]
			}
			for i, row := range want {
				for d, v := range row {
					if got := c.at(d*fan + i); got != v {
						t.Fatalf("column %d, place %d: %d, want %d", d, i, got, v)
					}
				}
			}
			if !c.sound(count, len(want)) {
				t.Fatal("lanes are not cut from what stands beside")
			}
			for d := range count {
				checkMost(t, &c, d*fan, len(want), value.Draw(t, "limit"))
			}
		}
	})
}

func checkMost(t *rapid.T, c *columns, at, n int, limit int64) {
	if n == 0 {
		return
	}
	most := c.at(at)
	for i := range n {
		most = max(most, c.at(at+i))
	}
	if got := c.most(at, n); got != most {
		t.Fatalf("at most %d, want %d", got, most)
	}
	if got := c.mostUpTo(at, n, max(limit, most)); got != most {
		t.Fatalf("at most %d where none is above %d, want %d", got, max(limit, most), most)
	}
}

// FuzzPrefix looks for two IDs of which the prefixes stand the other way round, and
// for one that is read otherwise at once than byte by byte.
func FuzzPrefix(f *testing.F) {
	f.Add("0190a5b2-0001-7000-8000-0123456789ab", "0190a5b2-0001-7000-8000-0123456789ac")
	f.Add("0190a5b2-0001-7000", "0190A5b2-0001-7000")
	f.Add("", "n1")
	for c := range 256 { // each byte where a digit stands, the first and the last
		f.Add(fmt.Sprintf("%c190a5b2-0001-7000-8", c), fmt.Sprintf("0190a5b2-0001-700%c-8", c))
		f.Add(string([]byte{byte(c)})+"190a5b2-0001-7000-8", "0190a5b2-0001-700"+string([]byte{byte(c)})+"-8")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, id := range []string{a, b} {
			if got, want := prefix(id), prefixOfAny(id); got != want {
				t.Errorf("%q: %016x, want %016x", id, got, want)
			}
		}
		if a > b {
			a, b = b, a
		}
		if prefix(a) > prefix(b) {
			t.Errorf("%q is below %q: %016x, %016x", a, b, prefix(a), prefix(b))
		}
	})
}
