package command

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

const days = "-from 2026-12-24 -until 2026-12-27T01:00:00+01:00 "

func TestVCOffersAndBids(t *testing.T) {
	f := cluster(t).on("PUT /v1/exchange/offer", map[string]string{"ID": evalA}).on("PUT /v1/exchange/bid", map[string]string{"ID": evalB}).
		on("DELETE /v1/exchange/"+allocA, "")
	sent := func(line, reported string) structs.Exchange {
		t.Helper()
		got := f.run(t, strings.Fields(line)...)
		if got.code != exitDone || got.err != "" {
			t.Fatalf("%s: exit code %d, %q", line, got.code, got.err)
		}
		wants(t, got.out, reported)
		var x structs.Exchange
		if err := json.Unmarshal([]byte(f.lastBody()), &x); err != nil {
			t.Fatal(err)
		}
		return x
	}
	x := sent("vc offer -kind nvidia/gpu/H100 -level rack -size 16 -count 2 -node-pool gpu "+days+"team", "Successfully made offer "+evalA+` of virtual cluster "team"; it is settled at 2026-12-24`)
	if c := x.Cells; x.Bid || x.Owner != "team" || c.Kind != "nvidia/gpu/H100" || c.Level != "rack" || c.Size != 16 || c.Count != 2 || c.NodePool != "gpu" ||
		!x.Until.Equal(time.Date(2026, 12, 27, 0, 0, 0, 0, time.UTC)) || x.Until.Sub(x.From) != 72*time.Hour {
		t.Errorf("offered %+v", x)
	}
	if x = sent("vc bid -level node -points 3 "+days+"lab", "Successfully made bid "+evalB); !x.Bid || x.Owner != "lab" || x.Points != 3 || x.Cells.Count != 1 {
		t.Errorf("bid %+v", x)
	}
	wants(t, f.run(t, "vc", "withdraw", "5f3a9c01").out, `Successfully withdrew 5f3a9c01 of virtual cluster "team"`)
	wrong := func(line, want string) {
		t.Helper()
		before := len(f.requests("PUT")) + len(f.requests("DELETE"))
		if got := f.run(t, strings.Fields(line)...); got.code != exitFailed || !strings.Contains(got.err, want) || len(f.requests("PUT"))+len(f.requests("DELETE")) > before {
			t.Errorf("%s: exit code %d, %q, want %q", line, got.code, got.err, want)
		}
	}
	wrong("vc offer "+days+"team", "-level is needed")
	wrong("vc offer -level node -from 2026-12-24 team", "-until is needed")
	wrong("vc offer -level node "+days, "one virtual cluster is needed, 0 given")
	wrong("vc offer -level node -from tomorrow -until 2026-12-25 team", `-from "tomorrow": must be a time such as 2026-12-01T08:00:00Z or a date`)
	wrong("vc offer -level node -from 2026-12-25 -until 2026-12-24 team", "from must be before until")
	wrong("vc offer -level node -points 3 "+days+"team", "there is no flag -points")
	wrong("vc offer -level node -count 0 "+days+"team", "count must be at least 1")
	wrong("vc bid -level node "+days+"team", "-points is needed")
	wrong("vc bid -level node -points 0 "+days+"team", "points must be 1 to")
	wrong("vc withdraw 5f3a9c0", "2 exchanges have IDs that start with")
	wrong("vc withdraw 7", `no exchange has an ID that starts with "7"`)
	f.answers["GET /v1/exchanges"] = []any{[]*structs.Exchange{{ID: allocA}}}
	wrong("vc withdraw 5f3a", `nothing was done: "5f3a" is only a prefix of the ID of exchange "`+allocA)
	wants(t, f.run(t, "vc", "withdraw", "-yes", "5f3a").out, "Successfully withdrew 5f3a9c01")
}

func TestVCPointsAndShift(t *testing.T) {
	f := cluster(t).on("PUT /v1/virtual-cluster/team/points", "").on("PUT /v1/virtual-cluster/team/shift", "")
	for line, body := range map[string]string{"team 100": `{"Points":100}`, "team -5": `{"Points":-5}`, "team -- -6": `{"Points":-6}`, "-namespace x team -7": `{"Points":-7}`} {
		got := f.run(t, append([]string{"vc", "points"}, strings.Fields(line)...)...)
		sent := f.bodies[len(f.bodies)-2] // the answer is read after it
		if got.code != exitDone || got.out != "Virtual cluster \"team\" has 12 points.\n" || sent != body {
			t.Errorf("%s: exit code %d, %q, %q, sent %s", line, got.code, got.out, got.err, sent)
		}
	}
	for line, want := range map[string]string{"team": "are needed, 1 given", "team x": `"x": the number of points must be a whole number`, "team -x": "there is no flag -x"} {
		if got := f.run(t, append([]string{"vc", "points"}, strings.Fields(line)...)...); got.code != exitFailed || !strings.Contains(got.err, want) {
			t.Errorf("%s: exit code %d, %q", line, got.code, got.err)
		}
	}
	const when = "-from 2026-12-24 -until 2026-12-27 -to 2027-01-04 "
	got := f.run(t, strings.Fields("vc shift -level node -count 2 "+when+"-until-to 2027-01-06T12:00:00Z team")...)
	if want := "Virtual cluster \"team\" owns 2 cells of level node fewer from 2026-12-24 to 2026-12-27, and more from 2027-01-04 to 2027-01-06T12:00Z.\n"; got.out != want || got.code != exitDone {
		t.Errorf("exit code %d, %q, %q", got.code, got.out, got.err)
	}
	var sent structs.CellShift
	if err := json.Unmarshal([]byte(f.lastBody()), &sent); err != nil || sent.Cells.Count != 2 || sent.UntilTo.Sub(sent.To) != 60*time.Hour {
		t.Errorf("sent %s", f.lastBody())
	}
	for line, want := range map[string]string{
		"-level node " + when + "team":                                "-until-to is needed",
		"-level node " + when + "-until-to 2027-01-08 team":           "a shift must not gain cell-hours",
		"-level node " + when + "-until-to 2027-01-05 a b":            "one virtual cluster is needed, 2 given",
		"-level node " + when + "-until-to 2027-13-05 team":           "-until-to",
		"-count -1 -level node " + when + "-until-to 2027-01-05 team": "count",
	} {
		if got := f.run(t, append([]string{"vc", "shift"}, strings.Fields(line)...)...); got.code != exitFailed || !strings.Contains(got.err, want) {
			t.Errorf("%s: exit code %d, %q, want %q", line, got.code, got.err, want)
		}
	}
}

// TestVCStatusOfOffers: what is offered or bid for is owned as before, and listed with its times.
func TestVCStatusOfOffers(t *testing.T) {
	f, a := twoTenants(t)
	from := time.Date(2101, 12, 24, 0, 0, 0, 0, time.UTC)
	x := structs.Exchange{ID: allocA, Owner: "team-a", Cells: structs.CellQuota{Kind: "nvidia/gpu/H100/2x2x2", Level: "node", Count: 2}, From: from, Until: from.Add(72 * time.Hour)}
	bid, other := x, x
	bid.ID, bid.Bid, bid.Points, bid.Cells.Count = allocB, true, 1, 1
	other.Owner, other.ID, other.Cells.Count = "team-b", evalA, 7
	a.Cells[0].Offered = 2
	f.answers["GET /v1/exchanges"] = []any{[]*structs.Exchange{&x, &bid, &other}}
	got := f.run(t, "vc", "status", "team-a")
	wants(t, got.out, "node   4      1    2      2     1    1       11 of 16   5\n", "Change  From        Until       Cells    Details\n"+
		"offer   2101-12-24  2101-12-27  node -2  5f3a9c01, not settled yet\n"+
		"bid     2101-12-24  2101-12-27  node +1  5f3a9c02, 1 point each, not settled yet\n")
	if strings.Contains(got.out, "node -7") {
		t.Errorf("an offer of another is in\n%s", got.out)
	}
}

// TestVCListUntil: a number of cells that a window, shift or exchange is the reason of is marked with its end.
func TestVCListUntil(t *testing.T) {
	f, a := twoTenants(t)
	cells := func(level string, n int) structs.CellQuota {
		return structs.CellQuota{Kind: "nvidia/gpu/H100/2x2x2", NodePool: "default", Level: level, Count: n}
	}
	at := func(hours int) int64 { return present.Add(time.Duration(hours) * time.Hour).UnixNano() }
	a.Changes = []structs.CellChange{
		{Cells: cells("node", 1), From: at(-1), Until: at(3), Why: structs.CellChangeWon},
		{Cells: cells("node", -1), From: at(-1), Until: at(2), Why: structs.CellChangeSold},
		{Cells: cells("node", -1), From: at(1), Until: at(2), Why: structs.CellChangeShift},
		{Cells: cells("node", -1), From: at(-2), Until: at(-1), Why: structs.CellChangeShift},
		{Cells: cells("socket", -1), From: at(-1), Until: at(2), Why: structs.CellChangeSold},
	}
	until := " (until " + windowTime(present.Add(2*time.Hour)) + ")"
	wants(t, f.run(t, "vc", "list").out, "  5 node"+until+", 0 socket"+until+"  ")
	a.Changes = a.Changes[2:4]
	wants(t, f.run(t, "vc", "list").out, "  5 node  ")
}

// TestKindTexts: the tree of a node is in a kind where it is needed to tell two apart.
func TestKindTexts(t *testing.T) {
	f := func(want string, kinds ...string) {
		t.Helper()
		list := make([]*structs.CellQuota, 0, len(kinds))
		for _, kind := range kinds {
			list = append(list, &structs.CellQuota{Kind: kind})
		}
		if got := strings.Join(kindTexts(list), " "); got != want {
			t.Errorf("%v: %q, want %q", kinds, got, want)
		}
	}
	f("")
	f(" v/gpu/m", "", "v/gpu/m")
	f("v/gpu/m v/gpu/m v/gpu/n", "v/gpu/m/2x4", "v/gpu/m/2x4", "v/gpu/n/2x2x2")
	f("v/gpu/m/2x4 v/gpu/m/2x2x2 v/gpu/n", "v/gpu/m/2x4", "v/gpu/m/2x2x2", "v/gpu/n/2x2x2")
}

// What was settled is shown until its cells have returned, on both sides.
func TestVCSettledExchanges(t *testing.T) {
	cells := func(n int) structs.CellQuota {
		return structs.CellQuota{Kind: "nvidia/gpu/H100", Level: "node", Count: n}
	}
	at := func(day int) int64 { return time.Date(2101, 12, day, 0, 0, 0, 0, time.UTC).UnixNano() }
	sold := structs.CellChange{Cells: cells(-2), From: at(24), Until: at(27), Why: structs.CellChangeSold, With: "lab", Points: 6}
	won := structs.CellChange{Cells: cells(2), From: at(24), Until: at(27), Why: structs.CellChangeWon, With: "team", Points: 6}
	old := won
	old.With, old.Points, old.Cells.Count, old.Until = "", 0, 1, at(26)
	ended := won
	ended.Until = time.Date(2001, 12, 24, 0, 0, 0, 0, time.UTC).UnixNano()
	shift := structs.CellChange{Cells: cells(-1), From: at(1), Until: at(2), Why: structs.CellChangeShift}
	team := &structs.VirtualClusterStatus{Name: "team", Changes: []structs.CellChange{sold, shift}}
	lab := &structs.VirtualClusterStatus{Name: "lab", Changes: []structs.CellChange{won, old, ended}}
	f := newFake(t).on("GET /v1/exchanges", []*structs.Exchange{}).on("GET /v1/virtual-clusters", []*structs.VirtualClusterStatus{lab, team}).
		on("GET /v1/virtual-cluster/team", team).on("GET /v1/virtual-cluster/lab", lab).on("GET /v1/allocations", []*structs.AllocListStub{})
	want := `No offers and bids

Settled
From Owner  To Owner  Kind             Level  Cells  Points  From        Back at
<none>      lab       nvidia/gpu/H100  node   1              2101-12-24  2101-12-26
team        lab       nvidia/gpu/H100  node   2      6       2101-12-24  2101-12-27
`
	if got := f.run(t, "vc", "exchanges"); got.out != want || got.code != exitDone {
		t.Errorf("%s%s\nwant\n%s", got.out, got.err, want)
	}
	if got := f.run(t, "vc", "exchanges", "-json"); strings.Contains(got.out, "Settled") {
		t.Errorf("%s", got.out)
	}
	wants(t, f.run(t, "vc", "status", "team").out, "Change  From        Until       Cells    Details",
		"sold    2101-12-24  2101-12-27  node -2  to lab for 6 points; back at 2101-12-27", "shift   2101-12-01  2101-12-02  node -1  back at 2101-12-02")
	wants(t, f.run(t, "vc", "status", "lab").out, "won     2101-12-24  2101-12-27  node +2  from team for 6 points; they go back at 2101-12-27",
		"won     2101-12-24  2101-12-26  node +1  they go back at 2101-12-26")
}
