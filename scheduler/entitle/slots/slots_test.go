package slots

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The golden examples of semantics part 4 about guards: a node of 16 GiB with 4 slots of 4 GiB.
func TestGoldenGuards(t *testing.T) {
	slot := Volume{MilliCores: 1000, MemoryMB: 4096}
	heavy, standard, light := Volume{1000, 12 << 10, 0}, Volume{1000, 4096, 0}, Volume{250, 1024, 0}
	cost, guards := Cost(heavy, slot), Guards(heavy, slot, Cost(heavy, slot))
	if cost != 1 || guards != 2 || IsLight(heavy, slot, 0.25) || !IsLight(light, slot, 0.25) || Guards(standard, slot, 1) != 0 {
		t.Fatalf("a 12 GiB job: %d slots and %d guards", cost, guards)
	}
	with := NodeUse{}.Add(cost, guards, false)
	if got := with.Add(1, 0, false).Taken(); got != 4 {
		t.Errorf("with a standard job: %d of 4", got)
	}
	if got := with.Add(cost, guards, false).Taken(); got <= 4 {
		t.Errorf("two 12 GiB jobs: %d of 4", got)
	}
	if got := with.Add(1, 0, true).Taken(); got != 3 {
		t.Errorf("with a light job in a guard: %d of 4", got)
	}
	if got := with.Add(1, 0, true).Remove(cost, guards, false).Taken(); got != 1 {
		t.Errorf("the light job alone: %d of 4", got)
	}
	if got := Cost(Volume{MilliCores: 64_000}, slot); got != 64 {
		t.Errorf("a 64-core job costs %d slots", got)
	}
	if got := Cost(Volume{MilliCores: 500, GPUs: 3}, Volume{MilliCores: 8000, GPUs: 2}); got != 2 {
		t.Errorf("3 GPUs of slots of 2 cost %d", got)
	}
}

// The five outcomes of the submission check, in their order.
func TestCheck(t *testing.T) {
	p := &Project{Users: []string{"ada"}, Groups: []string{"chip"}, Steps: []string{"place"}, Rows: []Row{{Type: "batch", Step: "place", Count: 1}, {Type: "other"}}}
	is := func(p *Project, s Submission, want Outcome) {
		t.Helper()
		if got := p.Check(&s); got != want {
			t.Errorf("%+v: %s, want %s", s, got, want)
		}
	}
	is(nil, Submission{Project: "x"}, UnknownProject)
	is(p, Submission{User: "eve", Step: "none"}, NotAMember)
	is(p, Submission{User: "ada", Step: "none"}, NoSuchStep)
	is(p, Submission{User: "ada", Type: "batch"}, NoSlots)
	is(p, Submission{User: "ada", Type: "other", Step: "place"}, NoSlots)
	is(p, Submission{User: "ada", Type: "batch", Step: "place"}, Recognised)
	is(p, Submission{User: "eve", Groups: []string{"chip"}, Type: "batch", Step: "place"}, Recognised)
	is(&Project{}, Submission{}, NotAMember)
}

// The most named fields go first, then user, group, job and step, then the position.
func TestOrderOfRows(t *testing.T) {
	rows := []Row{{}, {Step: "s"}, {Job: "j"}, {Group: "g"}, {User: "u"}, {Step: "s"}, {Step: "s", Job: "j"}, {User: "u", Step: "s"}}
	if got := inOrder(rows); !slices.Equal(got, []int{7, 6, 4, 3, 2, 1, 5, 0}) {
		t.Errorf("%v", got)
	}
}

// TestAccount: whatever is added, removed and edited, the account is that of an oracle that counts anew; nobody is in a row that does not match or
// has no room; and what Room promises can be added.
func TestAccount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.Custom(drawRow), 2, 5)
		a, kept, next := &Account{}, map[string]*Instance{}, 0
		a.SetRows(rows.Draw(t, "rows"))
		lose := func(lost []*Instance) {
			for _, of := range lost {
				delete(kept, of.ID)
			}
		}
		for range rapid.IntRange(10, 60).Draw(t, "steps") {
			was, copied := a, a.Copy()
			a = a.Copy()
			switch rapid.IntRange(0, 3).Draw(t, "do") {
			case 0, 1:
				next++
				of := drawInstance(t, fmt.Sprintf("i%02d", next))
				kept[of.ID] = of
				lose(a.Add(of))
			case 2:
				if len(kept) > 0 {
					ids := make([]string, 0, len(kept))
					for id := range kept {
						ids = append(ids, id)
					}
					slices.Sort(ids)
					id := rapid.SampledFrom(ids).Draw(t, "id")
					lose(a.Remove(kept[id]))
					delete(kept, id)
				}
			case 3:
				lose(a.SetRows(rows.Draw(t, "rows")))
			}
			againstOracle(t, a, kept)
			again := &Account{}
			given, _ := a.Rows()
			again.SetRows(given)
			for _, of := range kept { // in any order: it must not show
				again.Load(of)
			}
			if lost := again.Loaded(); len(lost) > 0 || !again.Equal(a) {
				t.Fatalf("an account made anew differs; it loses %d", len(lost))
			}
			if !was.Equal(copied) {
				t.Fatal("a copy has changed")
			}
			of := drawInstance(t, "zz")
			of.Start = 1 << 40
			most := rapid.IntRange(0, 9).Draw(t, "most")
			c, n := a.Copy(), 0
			for ; n < most; n++ {
				more := *of
				more.ID = fmt.Sprintf("zz%d", n)
				if len(c.Add(&more)) > 0 {
					break
				}
			}
			if got := a.Room(of, most); got != n || a.Holds(of) != (a.Room(of, 1) == 1) {
				t.Fatalf("room for %d of %d, of which %d could be added", got, most, n)
			}
		}
	})
}

func drawRow(t *rapid.T) Row {
	pick := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
	return Row{
		Type: pick("type", "batch", "batch", "batch", "batch", "other"), Step: pick("step", "", "", "s", "t"), User: pick("user", "", "", "u"), Group: pick("group", "", "", "g"),
		Job: pick("job", "", "", "a*", "b"), Count: rapid.IntRange(0, 3).Draw(t, "count"),
	}
}

func drawInstance(t *rapid.T, id string) *Instance {
	pick := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
	return &Instance{ID: id, Submission: Submission{
		Type: pick("type", "batch", "batch", "batch", "batch", "other"), Step: pick("step", "", "s", "t"), User: pick("user", "", "u", "v"), Groups: [][]string{nil, {"g"}}[rapid.IntRange(0, 1).Draw(t, "groups")],
		Job: pick("job", "ab", "b"),
	}, Cost: rapid.IntRange(1, 3).Draw(t, "cost"), Start: int64(rapid.IntRange(0, 4).Draw(t, "start"))}
}

// againstOracle counts by hand: in order of start each takes the best row that matches and has room.
func againstOracle(t *rapid.T, a *Account, kept map[string]*Instance) {
	list := make([]*Instance, 0, len(kept))
	for _, of := range kept {
		list = append(list, of)
	}
	slices.SortFunc(list, byStart)
	rows, used := a.Rows()
	left := make([]int, len(rows))
	for i := range rows {
		left[i] = rows[i].Count
	}
	better := func(x, y int) bool { // x before y
		nx, ny := 0, 0
		var bits [2]int
		for i, r := range []int{x, y} {
			for at, named := range []bool{rows[r].Step != "", rows[r].Job != "", rows[r].Group != "", rows[r].User != ""} {
				if named {
					bits[i] |= 1 << at
				}
			}
		}
		for _, is := range []int{1, 2, 4, 8} {
			if bits[0]&is > 0 {
				nx++
			}
			if bits[1]&is > 0 {
				ny++
			}
		}
		switch {
		case nx != ny:
			return nx > ny
		case bits[0] != bits[1]:
			return bits[0] > bits[1]
		}
		return x < y
	}
	for _, of := range list {
		best := NoRow
		for r := range rows {
			if rows[r].matches(&of.Submission) && left[r] >= of.Cost && (best == NoRow || better(r, best)) {
				best = r
			}
		}
		if best == NoRow {
			t.Fatalf("%+v is in the account, and no row holds it", of)
		}
		left[best] -= of.Cost
		if got := a.RowOf(of); got != best {
			t.Fatalf("%+v is held by row %d, not %d", of, got, best)
		}
	}
	for i := range rows {
		if used[i] != rows[i].Count-left[i] {
			t.Fatalf("row %d: %d used, not %d", i, used[i], rows[i].Count-left[i])
		}
	}
	if a.Len() != len(list) {
		t.Fatalf("%d instances, not %d", a.Len(), len(list))
	}
}
