package structs

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestBand(t *testing.T) {
	f := func(bands []PriorityBand, want map[int]int) {
		t.Helper()
		c := SchedulerConfiguration{Bands: bands}
		for priority, band := range want {
			if got := c.Band(priority); got != band {
				t.Errorf("%v: priority %d is of band %d, want %d", bands, priority, got, band)
			}
		}
	}
	f(nil, map[int]int{1: 0, 40: 0, 41: 1, 70: 1, 71: 2, 100: 2})
	f([]PriorityBand{{1, 4}, {5, 7}, {8, 10}}, map[int]int{4: 0, 5: 1, 7: 1, 8: 2, 9: 2, 10: 2, 11: 2, 100: 2})
	f([]PriorityBand{{1, 100}}, map[int]int{1: 0, 100: 0})
	// What no band holds belongs to the one below it, or else to the lowest.
	f([]PriorityBand{{10, 20}, {30, 40}, {90, 90}}, map[int]int{1: 0, 9: 0, 15: 0, 25: 0, 29: 0, 30: 1, 41: 1, 89: 1, 90: 2, 91: 2, 32766: 2})
}

// A 9 may preempt a 7 and a 4, never an 8 (semantics part 3).
func TestBandsOfTheExample(t *testing.T) {
	c := SchedulerConfiguration{Bands: []PriorityBand{{1, 4}, {5, 7}, {8, 10}}}
	for victim, want := range map[int]bool{4: true, 7: true, 8: false, 9: false, 10: false} {
		if got := c.Band(victim) < c.Band(9); got != want {
			t.Errorf("9 takes from %d: %v", victim, got)
		}
	}
}

func TestBandsAreChecked(t *testing.T) {
	f := func(bands []PriorityBand, want string) {
		t.Helper()
		c := DefaultSchedulerConfiguration()
		c.Bands = bands
		err := c.Validate()
		switch {
		case want == "" && err != nil:
			t.Error(err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || CodeOf(err) != CodeBadRequest):
			t.Errorf("%v: have %v, want %q", bands, err, want)
		}
	}
	f(nil, "")
	f([]PriorityBand{}, "")
	f(DefaultBands(), "")
	f([]PriorityBand{{1, 1}}, "")
	f([]PriorityBand{{5, 9}, {20, 20}, {99, 100}}, "")
	f([]PriorityBand{{1, 40}, {40, 100}}, "[40, 100] overlaps or goes before [1, 40]; state them lowest first, each above the last")
	f([]PriorityBand{{1, 100}, {50, 60}}, "[50, 60] overlaps")
	f([]PriorityBand{{41, 70}, {1, 40}}, "[1, 40] overlaps or goes before [41, 70]")
	f([]PriorityBand{{1, 40}, {1, 40}}, "[1, 40] overlaps")
	f([]PriorityBand{{40, 1}}, "[40, 1]: a band goes from a lower to a higher priority, of 1 to 100")
	f([]PriorityBand{{0, 40}}, "[0, 40]: a band goes")
	f([]PriorityBand{{-5, -1}}, "[-5, -1]: a band goes")
	f([]PriorityBand{{71, 101}}, "[71, 101]: a band goes")
	f([]PriorityBand{{}}, "[0, 0]: a band goes")
}

// Bands cut the priorities into as many ranges as there are bands, in their order: a higher
// priority is never of a lower band, and both ends of a band are of it.
func TestBandsOrderPriorities(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := DefaultSchedulerConfiguration()
		c.Bands = drawBands(t)
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		for p := JobMinPriority; p < JobMaxPriority; p++ {
			if step := c.Band(p+1) - c.Band(p); step < 0 || step > 1 {
				t.Fatalf("%v: %d is of band %d, %d of %d", c.Bands, p, c.Band(p), p+1, c.Band(p+1))
			}
		}
		for i, b := range c.Bands {
			if c.Band(b.Low) != i || c.Band(b.High) != i {
				t.Fatalf("%v: band %d is not %v", c.Bands, i, b)
			}
		}
	})
}

// drawBands returns valid bands, with gaps or without.
func drawBands(t *rapid.T) []PriorityBand {
	ends := rapid.SliceOfNDistinct(rapid.IntRange(JobMinPriority, JobMaxPriority), 0, 12, rapid.ID).Draw(t, "ends")
	ends = ends[:len(ends)/2*2]
	if len(ends) == 0 {
		return nil
	}
	slices.Sort(ends)
	var out []PriorityBand
	for i := 0; i < len(ends); i += 2 {
		out = append(out, PriorityBand{ends[i], ends[i+1]})
	}
	return out
}

// Each type of job has its own switch; in a new cluster system jobs alone preempt, as in Nomad.
func TestPreempts(t *testing.T) {
	standard := DefaultSchedulerConfiguration()
	types := []string{JobTypeService, JobTypeBatch, JobTypeSystem, JobTypeSysBatch}
	for _, jobType := range types {
		if got := standard.Preempts(jobType); got != (jobType == JobTypeSystem) {
			t.Errorf("in a new cluster %s jobs preempt: %v", jobType, got)
		}
	}
	switches := map[string]func(*PreemptionConfig) *bool{
		JobTypeService:  func(p *PreemptionConfig) *bool { return &p.ServiceSchedulerEnabled },
		JobTypeBatch:    func(p *PreemptionConfig) *bool { return &p.BatchSchedulerEnabled },
		JobTypeSystem:   func(p *PreemptionConfig) *bool { return &p.SystemSchedulerEnabled },
		JobTypeSysBatch: func(p *PreemptionConfig) *bool { return &p.SysBatchSchedulerEnabled },
	}
	for on, at := range switches {
		var c SchedulerConfiguration
		*at(&c.PreemptionConfig) = true
		for _, jobType := range types {
			if got := c.Preempts(jobType); got != (jobType == on) {
				t.Errorf("with the switch of %s, %s jobs preempt: %v", on, jobType, got)
			}
		}
	}
	if standard.Preempts(JobTypeCore) || standard.Preempts("") {
		t.Error("what is no job's type preempts")
	}
}

// Bands are read as they are written; what is none is named, and how it is written.
func TestBandsAsJSON(t *testing.T) {
	c := SchedulerConfiguration{SchedulerAlgorithm: AlgorithmBinpack, Bands: []PriorityBand{{1, 9}, {10, 100}}, KeepWhole: true, Cycle: 5}
	raw, err := json.Marshal(&c)
	if err != nil {
		t.Fatal(err)
	}
	var again SchedulerConfiguration
	if err := json.Unmarshal(raw, &again); err != nil || !reflect.DeepEqual(c, again) {
		t.Errorf("%s: %+v %v", raw, again, err)
	}
	for text, want := range map[string]string{
		`{"Bands":[[1,40]]}`:                   `Bands[0]: want an object, have a list; write bands as in [{"Low": 1, "High": 40}`,
		`{"Bands":[{"Low":"x","High":2}]}`:     `Bands[0].Low: want`,
		`{"Bands":[{"Low":1},{"High":[]}]}`:    `Bands[1].High: want`,
		`{"Bands":"1-40"}`:                     `Bands: want a list, have a string; write bands as in`,
		`{"Bands":[{"Low":1.5,"High":2}]}`:     `Bands[0].Low:`,
		`{"Bands":[{"Low":1e99,"High":2}]}`:    `Bands[0].Low:`,
		`{"Bands":[{"Low":true,"High":null}]}`: `Bands[0].Low: want`,
	} {
		if err := json.Unmarshal([]byte(text), &again); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: have %v, want %s", text, err, want)
		}
	}
}

// Drivers were added later: terms without them are written as they always were, and read.
func TestTermsWithoutDriversAreAsBefore(t *testing.T) {
	f := func(terms AllocTerms, want string) {
		t.Helper()
		got, err := json.Marshal(&terms)
		if err != nil || string(got) != want {
			t.Errorf("%+v is written as %s (%v), want %s", terms, got, err, want)
		}
		var back AllocTerms
		if err := json.Unmarshal([]byte(want), &back); err != nil || !back.Equal(&terms) {
			t.Errorf("%s is read as %+v (%v)", want, back, err)
		}
	}
	f(AllocTerms{Priority: 1, Submitted: 2, Reclaim: ReclaimSuspend}, `{"Priority":1,"Submitted":2,"Reclaim":"suspend"}`)
	f(AllocTerms{Priority: 1, Reclaim: ReclaimSuspend, Drivers: "a,b"}, `{"Priority":1,"Submitted":0,"Reclaim":"suspend","Drivers":"a,b"}`)
}
