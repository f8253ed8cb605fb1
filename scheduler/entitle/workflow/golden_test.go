package workflow

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

func cores(n int64) Amounts { return Amounts{Cores: n} }

// stageOf returns a stage of one instance for each number of cores.
func stageOf(needs ...int64) []Instance {
	stage := make([]Instance, len(needs))
	for i, n := range needs {
		stage[i].Needs = cores(n)
	}
	return stage
}

// singles returns borrowers of one core each, the i-th of them by lends[i % len(lends)].
func singles(n int, lends ...int) []Borrower {
	out := make([]Borrower, n)
	for i := range out {
		out[i] = Borrower{ID: fmt.Sprintf("b%02d", i), Lend: lends[i%len(lends)], Uses: cores(1), Since: int64(i)}
	}
	return out
}

// The golden example of part 5: what stages lend and take back, reserved by both rules.
func TestGoldenStages(t *testing.T) {
	f := func(rule Reserve, stages [][]Instance, reserved int64, lent, takenBack []int64) {
		t.Helper()
		totals := make([]Amounts, len(stages))
		for i := range stages {
			totals[i] = Total(stages[i])
		}
		want, err := rule.Amounts(totals)
		if err != nil || want != cores(reserved) {
			t.Fatalf("reserves %+v, %v; want %d", want, err, reserved)
		}
		packed := Pack([]Amounts{cores(16)}, stages, want)
		if len(packed.Parts) != 1 || packed.Parts[0].Amounts != want || !packed.Enlarged.IsZero() || !packed.Missing.IsZero() {
			t.Fatalf("packed %+v", packed)
		}
		part := PartState{Idle: want}
		var gotLent, gotTaken []int64
		for i := range stages { // all that idles is lent, and the stage before has ended
			r := TakeBack([]PartState{part}, stages[i], []int64{1, 1})
			if !r.Complete {
				t.Fatalf("stage %d does not fit: %+v", i, r)
			}
			gotTaken = append(gotTaken, int64(len(r.Victims)))
			idle := want.Minus(totals[i])
			gotLent = append(gotLent, idle.Cores)
			part = PartState{Idle: totals[i], Borrowers: singles(int(idle.Cores), 0, 1)}
		}
		if !slices.Equal(gotLent, lent) || !slices.Equal(gotTaken, takenBack) {
			t.Errorf("lent %v, want %v; taken back %v, want %v", gotLent, lent, gotTaken, takenBack)
		}
	}
	f(Reserve{}, [][]Instance{stageOf(2), stageOf(2, 3, 1), stageOf(5, 1), stageOf(8)}, 8, []int64{6, 2, 2, 0}, []int64{0, 4, 0, 2})
	f(Reserve{Sum: true}, [][]Instance{stageOf(4), stageOf(6)}, 10, []int64{6, 4}, []int64{0, 2})
}

// The golden example of part 5: who loses what is taken back.
func TestGoldenLends(t *testing.T) {
	f := func(borrowers []Borrower, need int64, shares, want []int64) {
		t.Helper()
		lost := make([]int64, len(shares))
		r := TakeBack([]PartState{{Borrowers: borrowers}}, stageOf(slices.Repeat([]int64{1}, int(need))...), shares)
		for _, b := range borrowers {
			if slices.Contains(r.Victims, b.ID) {
				lost[b.Lend]++
			}
		}
		if !r.Complete || !slices.Equal(lost, want) {
			t.Errorf("%d of %d taken back, shares %v: %v lost, want %v", need, len(borrowers), shares, lost, want)
		}
	}
	f(singles(8, 0, 1), 4, []int64{1, 1}, []int64{2, 2})
	f(singles(8, 0, 1), 4, []int64{0, 0}, []int64{4, 0})
	f(singles(8, 0, 1), 6, []int64{0, 0}, []int64{4, 2})
	f(singles(7, 0, 1, 2, 0, 1, 2, 0), 4, []int64{2, 1, 1}, []int64{2, 1, 1})
	// The first uses more than its share, since the second wanted less.
	f(singles(8, 0, 0, 0, 1), 2, []int64{1, 1}, []int64{2, 0})
	f(singles(8, 0, 0, 0, 1), 6, []int64{1, 1}, []int64{5, 1})
	if got := Shares(7, []int64{2, 1, 1}); !slices.Equal(got, []int64{3, 2, 2}) {
		t.Errorf("7 by 2:1:1 are %v", got)
	}
	if got := Shares(3, []int64{2, 1, 1}); !slices.Equal(got, []int64{1, 1, 1}) {
		t.Errorf("3 by 2:1:1 are %v", got)
	}
	if got := Shares(8, []int64{1, 1}); !slices.Equal(got, []int64{4, 4}) {
		t.Errorf("8 by 1:1 are %v", got)
	}
	if got := Shares(8, []int64{0, 0}); !slices.Equal(got, []int64{8, 0}) {
		t.Errorf("8 without shares are %v", got)
	}
}

// A lend whose block the workflow has not any more loses first, whatever the shares are.
func TestTakeBackUnknownLend(t *testing.T) {
	for _, shares := range [][]int64{{1, 1}, {0, 0}} {
		r := TakeBack([]PartState{{Borrowers: singles(6, 0, 1, 7)}}, stageOf(1, 1), shares)
		if !r.Complete || !slices.Equal(slices.Sorted(slices.Values(r.Victims)), []string{"b02", "b05"}) {
			t.Errorf("shares %v: %+v", shares, r)
		}
	}
}

// Of parts that would do, that is used where the fewest leave; of borrowers that would do, the one that fits the need.
func TestTakeBackFewest(t *testing.T) {
	parts := []PartState{
		{Idle: cores(1), Borrowers: singles(3, 0)},
		{Idle: cores(2), Borrowers: []Borrower{{ID: "large", Uses: cores(4)}, {ID: "small", Uses: cores(2)}}},
	}
	r := TakeBack(parts, stageOf(4), []int64{0})
	if !slices.Equal(r.Assigned, []int{1}) || !slices.Equal(r.Victims, []string{"small"}) || !r.Complete {
		t.Errorf("%+v", r)
	}
	parts[1].Borrowers = nil
	r = TakeBack(parts, stageOf(4), []int64{0})
	if !slices.Equal(r.Assigned, []int{0}) || len(r.Victims) != 3 {
		t.Errorf("%+v", r)
	}
	r = TakeBack(parts, stageOf(4, 9, 2), []int64{0})
	if !slices.Equal(r.Assigned, []int{0, -1, 1}) || r.Complete {
		t.Errorf("one that fits nowhere: %+v", r)
	}
}

// Nobody leaves where the stage fits into what is at hand, if not in the first order: 3 into 3, and 2 and 2 into 4.
func TestTakeBackIdle(t *testing.T) {
	parts := []PartState{{Idle: cores(4), Borrowers: singles(3, 0)}, {Idle: cores(3), Borrowers: singles(3, 0)}}
	r := TakeBack(parts, stageOf(3, 2, 2), []int64{0})
	if !r.Complete || !slices.Equal(r.Assigned, []int{1, 0, 0}) || len(r.Victims) > 0 {
		t.Errorf("%+v", r)
	}
}

// Who of several that would do has to leave.
func TestTakeBackOrder(t *testing.T) {
	borrower := func(id string, lend int, uses Amounts, since int64) Borrower { return Borrower{id, lend, uses, since} }
	f := func(name string, parts []PartState, stage []Instance, shares []int64, want ...string) {
		t.Helper()
		if r := TakeBack(parts, stage, shares); !r.Complete || !slices.Equal(r.Victims, want) {
			t.Errorf("%s: %+v, want %v", name, r, want)
		}
	}
	one := func(borrowers ...Borrower) []PartState { return []PartState{{Borrowers: borrowers}} }
	f("the latest of one lend", one(borrower("a", 0, cores(2), 1), borrower("b", 0, cores(2), 2), borrower("c", 0, cores(2), 1)),
		stageOf(2), []int64{1}, "b")
	f("the lend above its share, although it uses more", one(borrower("a", 0, cores(1), 1), borrower("b", 1, cores(5), 1)),
		stageOf(1), []int64{1, 1}, "b")
	f("who loses less above that, of lends above their share",
		one(borrower("a", 0, cores(5), 1), borrower("b", 1, cores(4), 1), borrower("c", 1, cores(1), 1)), stageOf(2), []int64{1, 1}, "b")
	f("the part with the fairer victim", []PartState{{Borrowers: []Borrower{borrower("a", 1, cores(1), 1)}}, {Borrowers: []Borrower{borrower("b", 0, cores(1), 1)}}},
		stageOf(1), []int64{0, 0}, "b")
	f("the part with less beyond the need", []PartState{
		{Borrowers: []Borrower{borrower("a", 0, Amounts{Cores: 2, MemoryMB: 9}, 1)}}, {Borrowers: []Borrower{borrower("b", 0, cores(2), 1)}},
	}, stageOf(2), []int64{0}, "b")
	f("who uses less, of one lend", []PartState{
		{Borrowers: []Borrower{borrower("a", 0, cores(4), 2), borrower("b", 0, cores(3), 1)}}, {Borrowers: []Borrower{borrower("c", 0, cores(2), 1)}},
	}, stageOf(3, 2), []int64{0}, "b", "c")
	// Of 3, 2 and 2 that are lent by 2:1:1 the last loses the first, although the part that is tried first would need 3.
	f("what is short in all", []PartState{{Borrowers: singles(3, 0, 1, 2)}, {Idle: cores(2), Borrowers: []Borrower{
		borrower("a", 0, cores(1), 1), borrower("b", 0, cores(1), 1), borrower("c", 1, cores(1), 1), borrower("d", 2, cores(1), 1),
	}}}, stageOf(3), []int64{2, 1, 1}, "d")
	// 1 is short in all, but 4 are needed at once: 2 from each.
	f("more than is short in all", []PartState{{Idle: cores(3)}, {Borrowers: singles(8, 0, 1)}}, stageOf(4), []int64{1, 1}, "b06", "b04", "b07", "b05")
}

// The largest instance takes the part with the fewest borrowers, which the other may use alone: then the stage is placed as it packs.
func TestTakeBackPacks(t *testing.T) {
	parts := []PartState{{Idle: cores(4)}, {Idle: cores(0), Borrowers: singles(4, 0)}}
	stage := stageOf(4, 3)
	stage[1].MayUse = func(part int) bool { return part == 0 }
	r := TakeBack(parts, stage, []int64{0})
	if !r.Complete || !slices.Equal(r.Assigned, []int{1, 0}) || len(r.Victims) != 4 {
		t.Errorf("%+v", r)
	}
}

func TestReserveAmounts(t *testing.T) {
	stages := []Amounts{{CPU: 100, MemoryMB: 50, Cores: 2}, {CPU: 20, MemoryMB: 80, Devices: 8}}
	f := func(r Reserve, want Amounts, text string) {
		t.Helper()
		got, err := r.Amounts(stages)
		if got != want || fmt.Sprint(err) != text {
			t.Errorf("%+v: %+v, %v", r, got, err)
		}
	}
	largest := Amounts{CPU: 100, MemoryMB: 80, Cores: 2, Devices: 8}
	f(Reserve{}, largest, "<nil>")
	f(Reserve{Sum: true}, Amounts{CPU: 120, MemoryMB: 130, Cores: 2, Devices: 8}, "<nil>")
	f(Reserve{Stated: Amounts{Cores: 5}}, Amounts{CPU: 100, MemoryMB: 80, Cores: 5, Devices: 8}, "<nil>")
	f(Reserve{Stated: Amounts{Cores: 1, Devices: 8}}, largest, "reserve: cores: 1 is below the 2 that the largest stage needs: state 2 or more")
	mixed := Amounts{CPU: 1000, MemoryMB: 80, Cores: 2, Devices: 8} // the first stage has 2 cores of 40 MHz
	f(Reserve{Stated: Amounts{CPU: 20, Cores: 3}, PerCore: 40}, Amounts{CPU: 140, MemoryMB: 80, Cores: 3, Devices: 8}, "<nil>")
	f(Reserve{Stated: Amounts{CPU: 19}, PerCore: 40}, largest, "reserve: cpu: 19 is below the 20 that the largest stage needs: state 20 or more")
	f(Reserve{Stated: Amounts{CPU: 920}, PerCore: 40}, mixed, "<nil>")
	f(Reserve{Stated: Amounts{Cores: 5}, PerCore: 40}, Amounts{CPU: 220, MemoryMB: 80, Cores: 5, Devices: 8}, "<nil>")
	_, err := Reserve{Stated: Amounts{Cores: 1, Devices: 7}}.Amounts(stages)
	var below *BelowStageError
	if !errors.As(err, &below) || *below != (BelowStageError{Resource: "cores", Stated: 1, Largest: 2}) {
		t.Errorf("%v", err)
	}
	r := Reserve{Stated: Amounts{Cores: 8}}
	if err := r.Check(Amounts{CPU: 5}); err != nil {
		t.Errorf("what is not stated may be enlarged: %v", err)
	}
	if err := (Reserve{Stated: Amounts{CPU: 100}, PerCore: 40}).Check(Amounts{CPU: 80, Cores: 2}); err != nil {
		t.Errorf("cores are enlarged with their MHz: %v", err)
	}
	if err := r.Check(cores(2)); fmt.Sprint(err) != "reserve: cores: the stages do not pack into 8 on the nodes that there are: state 10 or more" {
		t.Errorf("%v", err)
	}
}

func TestReserveCounts(t *testing.T) {
	stages := [][]License{{{"ansys", 2}, {"vcs", 4}}, {{"vcs", 3}}}
	f := func(r Reserve, want []License, text string) {
		t.Helper()
		got, err := r.Counts(stages)
		if !slices.Equal(got, want) || fmt.Sprint(err) != text {
			t.Errorf("%+v: %+v, %v", r, got, err)
		}
	}
	f(Reserve{}, []License{{"ansys", 2}, {"vcs", 4}}, "<nil>")
	f(Reserve{Sum: true}, []License{{"ansys", 2}, {"vcs", 7}}, "<nil>")
	f(Reserve{Licenses: []License{{"spice", 1}, {"vcs", 5}}}, []License{{"ansys", 2}, {"spice", 1}, {"vcs", 5}}, "<nil>")
	f(Reserve{Licenses: []License{{"vcs", 3}}}, []License{{"ansys", 2}, {"vcs", 4}},
		`reserve: license "vcs": 3 is below the 4 that the largest stage needs: state 4 or more`)
}

func TestPack(t *testing.T) {
	f := func(nodes []Amounts, stages [][]Instance, want Amounts, parts []Part, enlarged, missing Amounts) {
		t.Helper()
		got := Pack(nodes, stages, want)
		if !slices.Equal(got.Parts, parts) || got.Enlarged != enlarged || got.Missing != missing {
			t.Errorf("%+v, want parts %+v, enlarged %+v, missing %+v", got, parts, enlarged, missing)
		}
	}
	none := Amounts{}
	// The smallest node that has it all.
	f([]Amounts{cores(16), cores(8), cores(4)}, [][]Instance{stageOf(2, 3, 1)}, none, []Part{{1, cores(6)}}, none, none)
	// Two of 3 do not pack into 6 on nodes of 4 beside one of 4 and one of 2, unless the part of 2 grows.
	f([]Amounts{cores(4), cores(4)}, [][]Instance{stageOf(4, 2), stageOf(3, 3)}, cores(6), []Part{{0, cores(4)}, {1, cores(3)}}, cores(1), none)
	// What is wanted beyond the largest stage.
	f([]Amounts{cores(6), cores(8)}, [][]Instance{stageOf(4), stageOf(6)}, cores(10), []Part{{1, cores(8)}, {0, cores(2)}}, none, none)
	f([]Amounts{cores(4), cores(4)}, [][]Instance{stageOf(4)}, cores(10), []Part{{0, cores(4)}, {1, cores(4)}}, none, cores(2))
	// Enough in all, but nowhere at once: 1 is short where the most is.
	f([]Amounts{cores(3), cores(2)}, [][]Instance{stageOf(4)}, none, []Part{{0, cores(3)}}, none, cores(1))
	f(nil, [][]Instance{stageOf(4)}, none, nil, none, cores(4))
	// The node with the device, since a later stage needs it.
	gpu := Amounts{Cores: 8, Devices: 1}
	f([]Amounts{cores(8), gpu}, [][]Instance{stageOf(8), {{Needs: Amounts{Cores: 1, Devices: 1}}}}, none, []Part{{1, gpu}}, none, none)
	// An instance that may use one node only enlarges: 4 there beside 4 elsewhere.
	there := stageOf(4)
	there[0].MayUse = func(node int) bool { return node == 1 }
	f([]Amounts{cores(4), cores(8)}, [][]Instance{stageOf(4), there}, none, []Part{{0, cores(4)}, {1, cores(4)}}, cores(4), none)
}

func TestTimeRule(t *testing.T) {
	const now = int64(100 * time.Hour)
	left := func(want time.Duration, limited bool, jobs ...Run) {
		t.Helper()
		if got, ok := TimeLeft(jobs, now); got != want || ok != limited {
			t.Errorf("%+v: %v, %v", jobs, got, ok)
		}
	}
	left(2*time.Hour, true, Run{Limit: time.Hour, Start: now}, Run{Limit: 5 * time.Hour, Start: now - int64(3*time.Hour)})
	left(4*time.Hour, true, Run{Limit: 4 * time.Hour}, Run{Limit: 5 * time.Hour, Start: now - int64(3*time.Hour)})
	left(0, true, Run{Limit: time.Hour, Start: now - int64(3*time.Hour)})
	left(0, false, Run{Limit: time.Hour}, Run{})
	left(0, true)

	runs := []time.Duration{time.Hour, 3 * time.Hour, time.Minute, time.Minute, time.Minute}
	may := func(want bool, terms Terms, limit, left time.Duration, limited bool, history ...time.Duration) {
		t.Helper()
		if got := terms.MayBorrow(limit, left, limited, history); got != want {
			t.Errorf("%+v, limit %v of %v, %v, %v: %v", terms, limit, left, limited, history, got)
		}
	}
	may(true, Terms{}, time.Hour, time.Hour, true)
	may(false, Terms{}, time.Hour+1, time.Hour, true)
	may(true, Terms{Longer: true}, time.Hour+1, time.Hour, true)
	may(true, Terms{}, 0, 0, false)
	may(false, Terms{}, 0, 9*time.Hour, true, runs...)
	may(true, Terms{Longer: true}, 0, time.Hour, true)
	may(true, Terms{History: true}, 0, 3*time.Hour, true, runs...)
	may(false, Terms{History: true}, 0, 3*time.Hour-1, true, runs...)
	may(false, Terms{History: true}, 0, 3*time.Hour, true, runs[:4]...)
	may(true, Terms{History: true}, 0, time.Minute, true, append(slices.Repeat([]time.Duration{time.Minute}, 19), time.Hour)...)
	may(false, Terms{History: true}, 2*time.Minute, time.Minute, true, runs...)
}
