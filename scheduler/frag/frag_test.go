package frag_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler/frag"
)

// oracle is the measure as doc.go words it: each request by itself, in the order stated.
func oracle(requests []frag.Request, total int64, r frag.Room) float64 {
	sum, weights := 0.0, int64(0)
	for _, a := range requests {
		weights += max(0, a.Weight)
	}
	idle := 0.0
	for _, d := range r.Idle {
		idle += math.Max(0, float64(d))
	}
	for _, a := range requests {
		share := a.Share
		if share <= 0 || share > frag.Whole {
			share = frag.Whole
		}
		if a.Weight <= 0 || a.Count < 1 || a.CPU > 0 && a.CPU > r.CPU || a.CPU <= 0 && r.CPU < 0 || max(0, a.Memory) > r.Memory {
			continue
		}
		most := 0
		for _, d := range r.Idle {
			if share == frag.Whole {
				most += max(0, min(1, int(d)/frag.Whole))
			} else {
				most += max(0, int(d)/share)
			}
		}
		if share == frag.Whole {
			most /= a.Count
		}
		n := float64(most)
		if a.CPU > 0 {
			n = math.Min(n, float64(r.CPU)/float64(a.CPU))
		}
		if a.Memory > 0 {
			n = math.Min(n, float64(r.Memory)/float64(a.Memory))
		}
		usable := n * float64(a.Count) * float64(share)
		sum += float64(a.Weight) / float64(max(total, weights)) * math.Max(1, a.Scarcity) * math.Sqrt(idle*usable)
	}
	return sum
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*(1+math.Abs(a)+math.Abs(b)) }

func drawRequests(t *rapid.T) []frag.Request {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) frag.Request {
		a := frag.Request{
			CPU: rapid.Int64Range(-1, 40).Draw(t, "cpu"), Memory: rapid.Int64Range(-1, 40).Draw(t, "memory"),
			Count: 1, Weight: rapid.Int64Range(0, 9).Draw(t, "weight"),
		}
		if rapid.Bool().Draw(t, "part") {
			a.Share = rapid.IntRange(-1, 1001).Draw(t, "share")
		} else {
			a.Count, a.Share = rapid.IntRange(0, 9).Draw(t, "count"), frag.Whole
		}
		a.Scarcity = rapid.SampledFrom([]float64{-1, 0, 0.5, 1, 1.125, 4, 16}).Draw(t, "scarcity")
		return a
	}), 0, 12).Draw(t, "asks")
}

func drawRoom(t *rapid.T) frag.Room {
	return frag.Room{
		CPU: rapid.Int64Range(0, 100).Draw(t, "cpu"), Memory: rapid.Int64Range(0, 100).Draw(t, "memory"),
		Idle: rapid.SliceOfN(rapid.OneOf(rapid.Just(int32(1000)), rapid.Int32Range(-5, 1000)), 0, 9).Draw(t, "idle"),
	}
}

func TestAbilityIsAsWorded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		requests, room, total := drawRequests(t), drawRoom(t), rapid.Int64Range(0, 99).Draw(t, "total")
		m := frag.New(requests, total)
		if have, want := m.Ability(&room), oracle(requests, total, room); !near(have, want) {
			t.Fatalf("have %v, want %v", have, want)
		}
	})
}

// What a room can do is at most what is idle, for requests of which none is scarce, else as often as the mean
// of their scarcities says; and never more with less.
func TestAbilityIsBoundedAndGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		requests, room := drawRequests(t), drawRoom(t)
		m := frag.New(requests, 0)
		weights, most := 0.0, 0.0
		for _, a := range requests {
			weights += float64(max(0, a.Weight))
			most += float64(max(0, a.Weight)) * math.Max(1, a.Scarcity)
		}
		most *= float64(room.Sum()) / math.Max(1, weights)
		has := m.Ability(&room)
		if has < 0 || has > most*(1+1e-9) || !near(m.Fragmentation(&room), float64(room.Sum())-has) {
			t.Fatalf("%v of %d is usable, at most %v; %v is not", has, room.Sum(), most, m.Fragmentation(&room))
		}
		less := frag.Room{CPU: room.CPU - rapid.Int64Range(0, 9).Draw(t, "less cpu"), Memory: room.Memory - rapid.Int64Range(0, 9).Draw(t, "less memory")}
		for i, d := range room.Idle {
			less.Idle = append(less.Idle, d-rapid.Int32Range(0, 500).Draw(t, fmt.Sprint("less of ", i)))
		}
		if has2 := m.Ability(&less); has2 > has*(1+1e-9) {
			t.Fatalf("%v with less, %v with more", has2, has)
		}
	})
}

func TestExamples(t *testing.T) {
	f := func(requests []frag.Request, total int64, r frag.Room, ability int) {
		t.Helper()
		if have := int(math.Floor(frag.New(requests, total).Ability(&r))); have != ability {
			t.Errorf("%v in %v: have %d, want %d", requests, r, have, ability)
		}
	}
	one, third := frag.Request{Count: 1, Weight: 1}, frag.Request{Count: 1, Share: 300, Weight: 1}
	f([]frag.Request{one, third}, 0, frag.Room{Idle: []int32{1000, 300}}, 1194) // as in doc.go
	f([]frag.Request{one}, 0, frag.Room{Idle: []int32{1000, 1000}}, 2000)
	f([]frag.Request{one}, 2, frag.Room{Idle: []int32{1000, 1000}}, 1000) // half of all ask for something else
	f([]frag.Request{one}, 0, frag.Room{Idle: []int32{999, 999}}, 0)
	f([]frag.Request{{Count: 2, Weight: 1}}, 0, frag.Room{Idle: []int32{1000, 500}}, 0)
	// CPU for one of four devices: a quarter may be used, the rest is idle.
	f([]frag.Request{{CPU: 8, Count: 1, Weight: 1}}, 0, frag.Room{CPU: 8, Idle: []int32{1000, 1000, 1000, 1000}}, 2000)
	f([]frag.Request{{CPU: 9, Count: 1, Weight: 1}}, 0, frag.Room{CPU: 8, Idle: []int32{1000}}, 0)
	scarce := frag.Request{Count: 1, Weight: 1, Scarcity: 4}
	f([]frag.Request{scarce, third}, 0, frag.Room{Idle: []int32{1000, 300}}, 2904) // as in doc.go
	f([]frag.Request{third}, 2, frag.Room{Idle: []int32{1000, 300}}, 624)          // on other devices
	f(nil, 0, frag.Room{CPU: 8, Idle: []int32{1000}}, 0)
	f([]frag.Request{one}, 0, frag.Room{}, 0)
}
