package httpapi

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func TestTopology(t *testing.T) {
	fk := newFake()
	fk.answer[wire.MethodTopology] = structs.TopologyReply{
		Topology:  &structs.Topology{Levels: []string{"gpu"}, Nodes: []*structs.TopologyNode{{ID: "n", Devices: 8}}},
		QueryMeta: structs.QueryMeta{Index: 42, KnownLeader: true, NextToken: "next"},
	}
	ts := newTestServer(t, testConfig(fk))
	resp, text := post(t, ts, "GET", "/v1/topology?details&per_page=3&prefix=a&index=41&wait=1s&stale", "")
	if resp.StatusCode != 200 || resp.Header.Get("X-Nomad-Index") != "42" || resp.Header.Get("X-Nomad-Nexttoken") != "next" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	args := fk.args[wire.MethodTopology].(*structs.TopologyRequest)
	if !args.Details || args.NodeID != "" || args.PerPage != 3 || args.Prefix != "a" || args.MinQueryIndex != 41 || !args.AllowStale {
		t.Errorf("asked %+v", args)
	}
	for _, want := range []string{`"Sites":[]`, `"Levels":["gpu"]`, `"FreeCells":[]`, `"Devices":8`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in %s", want, text)
		}
	}
	post(t, ts, "GET", "/v1/topology/node/n", "")
	if args := fk.args[wire.MethodTopology].(*structs.TopologyRequest); args.NodeID != "n" {
		t.Errorf("asked %+v", args)
	}
	fk.answer[wire.MethodTopology] = structs.TopologyReply{}
	if resp, text := post(t, ts, "GET", "/v1/topology/node/n", ""); resp.StatusCode != 404 || !strings.Contains(text, "node not found") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if resp, _ := post(t, ts, "GET", "/v1/topology?details=perhaps", ""); resp.StatusCode != 400 {
		t.Errorf("details=perhaps: %d", resp.StatusCode)
	}
	if resp, _ := post(t, ts, "PUT", "/v1/topology", ""); resp.StatusCode != 405 {
		t.Errorf("PUT: %d", resp.StatusCode)
	}
}

// Of a change of the scheduler's configuration it is told which of our fields it does
// not state, so that Nomad's clients leave them alone.
func TestSchedulerFieldsThatAreNotStated(t *testing.T) {
	fk := newFake()
	ts := newTestServer(t, testConfig(fk))
	f := func(body string, want structs.SchedulerConfiguration, absent ...string) {
		t.Helper()
		if resp, text := post(t, ts, "PUT", "/v1/operator/scheduler/configuration", body); resp.StatusCode != 200 {
			t.Fatalf("%s: %d %s", body, resp.StatusCode, text)
		}
		args := fk.args[wire.MethodSchedulerSet].(*structs.SchedulerConfigRequest)
		want.NodeLimitForFeasibilityChecks, want.PreemptionConfig.SystemSchedulerEnabled = 100, !strings.Contains(body, "System")
		got, _ := json.Marshal(args.Config)
		wanted, _ := json.Marshal(want)
		if string(got) != string(wanted) || !slices.Equal(args.Absent, absent) {
			t.Errorf("%s: have %s without %q, want %s without %q", body, got, args.Absent, wanted, absent)
		}
	}
	all := structs.OwnSchedulerFields()
	f(`{"SchedulerAlgorithm":"spread"}`, structs.SchedulerConfiguration{SchedulerAlgorithm: "spread"}, all...)
	f(`{"policy":"spread"}`, structs.SchedulerConfiguration{SchedulerAlgorithm: "spread"}, all[1:]...)
	own := func(batch bool) (c structs.SchedulerConfiguration) {
		c.SchedulerAlgorithm, c.PreemptionConfig.BatchSchedulerEnabled = "binpack", batch
		return c
	}
	f(`{"PreemptionConfig":{"BatchSchedulerEnabled":true}}`, own(true), all...)
	f(`{"PreemptionConfig":{"SystemSchedulerEnabled":false}}`, own(false), all...)
	off := 0
	f(`{"Bands":[{"Low":1,"High":9}],"KeepWhole":true,"Cycle":"1m","Aging":0}`, structs.SchedulerConfiguration{
		SchedulerAlgorithm: "binpack", Bands: []structs.PriorityBand{{Low: 1, High: 9}}, KeepWhole: true, Cycle: 60e9, Aging: &off,
	}, append(all[:7:7], "Calendar", "Slots")...)
	day, part := 24*time.Hour, 0.5
	f(`{"Slots":{"Grace":"24h","Light":0.5,"Types":[{"Name":"gpu","Grace":86400000000000,"GPUs":1}]}}`, structs.SchedulerConfiguration{
		SchedulerAlgorithm: "binpack", Slots: &structs.SlotSettings{Grace: &day, Light: &part, Types: []structs.SlotType{{Name: "gpu", GPUs: 1, Grace: &day}}},
	}, all[:len(all)-1]...)
	f(`{"Policy":"","Dimensions":null,"Granularity":{},"Levels":[],"PreferredCells":[4],"ReservationAfter":"1m","ReservationTTL":7}`,
		structs.SchedulerConfiguration{
			SchedulerAlgorithm: "binpack", Granularity: map[string]int64{}, Levels: []structs.TopologyLevel{}, PreferredCells: []int{4},
			ReservationAfter: 60e9, ReservationTTL: 7,
		}, all[7:]...)
	for body, want := range map[string]string{
		`{"Policy":"best"}`:                                    `must be \"binpack\"`,
		`{"Levels":[{"Name":"node"}]}`:                         "a level within nodes",
		`{"ReservationAfter":"soon"}`:                          "ReservationAfter",
		`{"Granularity":{"cpu":0}}`:                            "at least 1",
		`{"Bands":[{"Low":1,"High":50},{"Low":50,"High":99}]}`: "[50, 99] overlaps or goes before [1, 50]; state them lowest first",
		`{"Bands":[{"Low":40,"High":1}]}`:                      "[40, 1]: a band goes from a lower to a higher priority, of 1 to 100",
		`{"Bands":[{"Low":0,"High":101}]}`:                     "of 1 to 100",
		`{"Bands":[{"Low":"low"}]}`:                            "Bands[0].Low: want a number",
		`{"Bands":[[1,40]]}`:                                   "write bands as in",
		`{"KeepWhole":"perhaps"}`:                              "KeepWhole",
		`{"Slots":{"Light":2}}`:                                "Slots: light 2: must be 0 to 1",
		`{"Slots":{"Grace":"soon"}}`:                           "Slots.Grace",
		`{"Cycle":-1}`:                                         "must not be negative",
		`{"Aging":2}`:                                          "must be 1, or 0",
		`[]`:                                                   "want an object",
		`{"Levels":[]} x`:                                      "something follows",
		`{"SchedulerAlgorithm":"spread",}`:                     "bad JSON",
	} {
		resp, text := post(t, ts, "PUT", "/v1/operator/scheduler/configuration", body)
		if resp.StatusCode != 400 || !strings.Contains(text, strings.ReplaceAll(want, `\"`, `"`)) {
			t.Errorf("%s: %d %s", body, resp.StatusCode, text)
		}
	}
}
