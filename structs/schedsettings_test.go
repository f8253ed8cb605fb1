package structs

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSchedulerDefaults(t *testing.T) {
	c := DefaultSchedulerConfiguration()
	after, on := c.ReserveAfter()
	for what, good := range map[string]bool{
		"valid":      c.Validate() == nil,
		"order":      c.NodeOrder() == "least-fragmentation",
		"dimensions": reflect.DeepEqual(c.DimensionOrder(), []string{"gpus", "cpu", "memory"}),
		"steps":      c.Step("gpus") == 1 && c.Step("cpu") == 500 && c.Step("memory") == 1024,
		"levels":     reflect.DeepEqual(c.SiteLevels(), []TopologyLevel{{"rack", "rack"}}),
		"reserve":    on && after == 5*time.Minute && c.ReserveTTL() == time.Hour,
		"bands":      reflect.DeepEqual(c.PriorityBands(), []PriorityBand{{1, 40}, {41, 70}, {71, 100}}),
		"cycle":      c.CycleLength() == 20*time.Second && c.CycleAt(int64(time.Minute)) == 3,
	} {
		if !good {
			t.Errorf("%s: %+v", what, c)
		}
	}
	c.Levels = []TopologyLevel{}
	c.Granularity = map[string]int64{"cpu": 7}
	c.ReservationAfter = -1
	if _, on := c.ReserveAfter(); len(c.SiteLevels()) != 0 || c.Step("cpu") != 7 || c.Step("memory") != 1024 || on {
		t.Errorf("what is stated is not kept: %+v", c)
	}
}

// Effective writes defaults out, is valid itself, and shares nothing.
func TestEffectiveSchedulerConfiguration(t *testing.T) {
	c := SchedulerConfiguration{SchedulerAlgorithm: "spread", Dimensions: []string{"memory"}}
	e := c.Effective()
	if err := e.Validate(); err != nil {
		t.Error(err)
	}
	if e.Policy != "" || e.NodeOrder() != "spread" || e.Levels[0].Name != "rack" || e.Granularity["memory"] != 1024 ||
		e.ReservationAfter != 5*time.Minute || e.PreferredCells == nil {
		t.Errorf("%+v", e)
	}
	if len(e.Bands) != 3 || e.KeepWhole || e.Cycle != 20*time.Second || *e.Aging != 1 {
		t.Errorf("%+v", e)
	}
	off := 0
	own := SchedulerConfiguration{SchedulerAlgorithm: "binpack", Bands: []PriorityBand{{1, 9}}, KeepWhole: true, Cycle: 7, Aging: &off}
	stated := own.Effective()
	if len(stated.Bands) != 1 || !stated.KeepWhole || stated.Cycle != 7 || *stated.Aging != 0 {
		t.Errorf("%+v", stated)
	}
	*stated.Aging, stated.Bands[0].Low = 1, 2
	if *own.Aging != 0 || own.Bands[0].Low != 1 {
		t.Error("shares its bands or aging")
	}
	e.Dimensions[0] = "cpu"
	if c.Dimensions[0] != "memory" {
		t.Error("shares its dimensions")
	}
	if again := e.Effective(); !reflect.DeepEqual(again, e) {
		t.Errorf("once more changes it: %+v, %+v", again, e)
	}
}

func TestSchedulerConfigurationIsChecked(t *testing.T) {
	f := func(change func(*SchedulerConfiguration), want string) {
		t.Helper()
		c := DefaultSchedulerConfiguration()
		change(&c)
		switch err := c.Validate(); {
		case want == "" && err != nil:
			t.Error(err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || CodeOf(err) != CodeBadRequest):
			t.Errorf("have %v, want %q", err, want)
		}
	}
	f(func(c *SchedulerConfiguration) { c.SchedulerAlgorithm = "x" }, `SchedulerAlgorithm "x"`)
	f(func(c *SchedulerConfiguration) { c.Policy = "least-fragmentation" }, "")
	f(func(c *SchedulerConfiguration) { c.Policy = "binpack" }, "")
	f(func(c *SchedulerConfiguration) { c.Policy = "spread" }, `contradicts SchedulerAlgorithm "binpack"`)
	f(func(c *SchedulerConfiguration) { c.Policy = "randm" }, `did you mean "random"?`)
	f(func(c *SchedulerConfiguration) { c.Dimensions = []string{"memory", "gpus"} }, "")
	f(func(c *SchedulerConfiguration) { c.Dimensions = []string{"gpu"} }, `"gpu": must be "gpus", "cpu" or "memory"; did you mean "gpus"?`)
	f(func(c *SchedulerConfiguration) { c.Dimensions = []string{"cpu", "cpu"} }, `"cpu" is stated twice`)
	f(func(c *SchedulerConfiguration) { c.Granularity = map[string]int64{"cpu": 0} }, "cpu = 0: must be at least 1")
	f(func(c *SchedulerConfiguration) { c.Granularity = map[string]int64{"disk": 1} }, `"disk": must be`)
	f(func(c *SchedulerConfiguration) { c.Levels = []TopologyLevel{{"rack", "rack"}, {"pod", "p.q"}} }, "")
	f(func(c *SchedulerConfiguration) { c.Levels = []TopologyLevel{{"node", "rack"}} }, "is a level within nodes")
	f(func(c *SchedulerConfiguration) { c.Levels = []TopologyLevel{{"a b", "rack"}} }, "named by letters")
	f(func(c *SchedulerConfiguration) { c.Levels = []TopologyLevel{{"rack", ""}} }, "needs the name of a key")
	f(func(c *SchedulerConfiguration) { c.Levels = []TopologyLevel{{"rack", "a"}, {"rack", "b"}} }, "stated twice")
	f(func(c *SchedulerConfiguration) { c.Levels = make([]TopologyLevel, 17) }, "at most 16")
	f(func(c *SchedulerConfiguration) { c.PreferredCells = []int{2, 8} }, "")
	f(func(c *SchedulerConfiguration) { c.PreferredCells = []int{0} }, "from 1 to 4096")
	f(func(c *SchedulerConfiguration) { c.PreferredCells = []int{2, 2} }, "2 is stated twice")
	f(func(c *SchedulerConfiguration) { c.PreferredCells = make([]int, 65) }, "at most 64")
	f(func(c *SchedulerConfiguration) { c.ReservationAfter = -1 }, "")
	f(func(c *SchedulerConfiguration) { c.ReservationTTL = -1 }, "must not be negative")
	f(func(c *SchedulerConfiguration) { c.Bands = []PriorityBand{{1, 50}, {50, 100}} }, "Bands: [50, 100] overlaps")
	f(func(c *SchedulerConfiguration) { c.Cycle = -time.Second }, "Cycle -1s: must not be negative; Aging 0 is what turns aging off")
	for aging, want := range map[int]string{0: "", 1: "", 2: "Aging 2: must be 1, or 0 to turn it off", -1: "Aging -1"} {
		f(func(c *SchedulerConfiguration) { c.Aging = &aging }, want)
	}
}

// A change that names only what Nomad has leaves the rest.
func TestKeepSchedulerFields(t *testing.T) {
	was := SchedulerConfiguration{
		SchedulerAlgorithm: "binpack", Policy: "random", Dimensions: []string{"cpu"}, Granularity: map[string]int64{"cpu": 2},
		Levels: []TopologyLevel{{"pod", "pod"}}, PreferredCells: []int{4}, ReservationAfter: 1, ReservationTTL: 2,
		Bands: []PriorityBand{{1, 9}}, KeepWhole: true, Cycle: 3, Aging: new(int), Slots: &SlotSettings{Types: []SlotType{{Name: "licensed"}}}, Calendar: &CalendarConfiguration{TimeZone: "Europe/Berlin"},
	}
	for i, f := range Fields(reflect.TypeFor[SchedulerConfiguration]()) { // each of our own is tried
		if slices.Contains(OwnSchedulerFields(), f.Name) && reflect.ValueOf(was).FieldByIndex(f.Index).IsZero() {
			t.Errorf("%d: %s is not set in this test", i, f.Name)
		}
	}
	same := SchedulerConfiguration{SchedulerAlgorithm: "binpack"}
	same.Keep(&was, OwnSchedulerFields())
	if !reflect.DeepEqual(same, was) {
		t.Errorf("have %+v, want %+v", same, was)
	}
	other := SchedulerConfiguration{SchedulerAlgorithm: "spread"}
	other.Keep(&was, OwnSchedulerFields())
	if other.NodeOrder() != "spread" || len(other.Levels) != 1 {
		t.Errorf("another algorithm must end the policy: %+v", other)
	}
	cleared := SchedulerConfiguration{SchedulerAlgorithm: "binpack", Levels: []TopologyLevel{}}
	cleared.Keep(&was, []string{"Policy"})
	if cleared.Policy != "random" || len(cleared.Levels) != 0 || cleared.Dimensions != nil {
		t.Errorf("%+v", cleared)
	}
	known := map[string]bool{}
	for _, f := range Fields(reflect.TypeFor[SchedulerConfiguration]()) {
		known[f.Name] = true
	}
	for _, name := range OwnSchedulerFields() {
		if !known[name] {
			t.Errorf("%s is no field", name)
		}
	}
	for policy, want := range map[string]string{"random": "binpack random", "spread": "spread "} {
		c := SchedulerConfiguration{SchedulerAlgorithm: "binpack", Policy: "next-fit"}
		c.SetNodeOrder(policy)
		if got := c.SchedulerAlgorithm + " " + c.Policy; got != want || c.NodeOrder() != policy {
			t.Errorf("%s: %q", policy, got)
		}
	}
}

func TestSchedulerConfigurationJSON(t *testing.T) {
	c := SchedulerConfiguration{NodeLimitForFeasibilityChecks: 100}
	err := json.Unmarshal([]byte(`{"SchedulerAlgorithm":"spread","ReservationAfter":"10m","ReservationTTL":5,`+
		`"Levels":[],"Granularity":{"cpu":100},"PreferredCells":[8],"Unknown":1}`), &c)
	if err != nil {
		t.Fatal(err)
	}
	if c.ReservationAfter != 10*time.Minute || c.ReservationTTL != 5 || c.Levels == nil || c.Granularity["cpu"] != 100 ||
		c.NodeLimitForFeasibilityChecks != 100 || c.PreferredCells[0] != 8 {
		t.Errorf("%+v", c)
	}
	raw, err := json.Marshal(c.Effective())
	if err != nil {
		t.Fatal(err)
	}
	var again SchedulerConfiguration
	if err := json.Unmarshal(raw, &again); err != nil || !reflect.DeepEqual(&again, c.Effective()) {
		t.Errorf("%s: %+v %v", raw, again, err)
	}
	if err := json.Unmarshal([]byte(`{"Levels":[{"Name":1}]}`), &again); err == nil || !strings.Contains(err.Error(), "Levels[0].Name: want a string") {
		t.Error(err)
	}
}

// A share that is not stated is a whole device; a stated 0 is nothing, and refused.
func TestShare(t *testing.T) {
	f := func(device string, share int, want string) {
		t.Helper()
		j := oneTask(t, "", "", `,"Resources":{"Devices":[{"Name":"nvidia/gpu"`+device+`}]}`)
		d := j.TaskGroups[0].Tasks[0].Resources.Devices[0]
		if want == "" && d.Share != share {
			t.Errorf("%s: share %d", device, d.Share)
		}
		got := strings.Join(j.Validate().Strings(), "\n")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: have %q, want %q", device, got, want)
		}
	}
	f(``, 1000, "")
	f(`,"Share":null`, 1000, "")
	f(`,"Share":1000,"Count":2`, 1000, "")
	f(`,"Share":1`, 1, "")
	f(`,"Share":0`, 0, `device "nvidia/gpu": share: must be between 1 and 1000 thousandths of a device, not 0`)
	f(`,"Share":1001`, 0, "share: must be between 1 and 1000, not 1001")
	f(`,"Share":-5`, 0, "share: must be between 1 and 1000, not -5")
	f(`,"Share":500,"Count":2`, 0, "a share is of one device; not 500")
	made := RequestedDevice{Name: "gpu"} // as a program makes it
	raw, err := json.Marshal(made)
	if err != nil || strings.Contains(string(raw), "Share") {
		t.Errorf("a share that is not stated is sent: %s %v", raw, err)
	}
}

func TestDeviceNames(t *testing.T) {
	f := func(name string, good bool) {
		t.Helper()
		j := oneTask(t, "", "", `,"Resources":{"Devices":[{"Name":"`+name+`"}]}`)
		got := j.Validate().Strings()
		if (len(got) == 0) != good {
			t.Errorf("%q: %q", name, got)
		}
	}
	f("gpu", true)
	f("nvidia/gpu", true)
	f("nvidia/gpu/H100", true)
	f("nvidia/gpu/H100/80GB", false)
	f("", false)
	f("nvidia/", false)
	f("/gpu", false)
}

// A gang of instances on one node or many: what it states must agree with itself.
func TestGangs(t *testing.T) {
	f := func(group, more, want string) {
		t.Helper()
		j := jobOf(t, `{"ID":"j","TaskGroups":[{"Name":"g","Count":4`+group+`,"Tasks":[{"Name":"t","Driver":"d"}]},
			{"Name":"h"`+more+`,"Tasks":[{"Name":"t","Driver":"d"}]}]}`)
		got := strings.Join(j.Validate().Strings(), "\n")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: have %q, want %q", group, got, want)
		}
		if warnings := j.Warnings(); len(warnings) > 0 {
			t.Errorf("%s: warnings %q", group, warnings)
		}
	}
	f(`,"Gang":{}`, "", "")
	f(`,"Gang":{"Min":4},"Topology":{"Level":"pcie","Required":true}`, "", "") // four instances on one switch
	f(`,"Gang":{"Min":5}`, "", "must be at most the group's count of 4, not 5")
	f(`,"Gang":{"Min":-1}`, "", "min: must not be negative")
	f(`,"Gang":{"Groups":["h"]},"Topology":{"Level":"rack"}`, `,"Gang":{"Groups":["g"]},"Topology":{"Level":"rack"}`, "")
	f(`,"Gang":{"Groups":["h"]},"Topology":{"Level":"rack"}`, `,"Topology":{"Level":"node"}`, `must have the same topology block: that of group "h" differs`)
	f(`,"Gang":{"Groups":["h"]}`, `,"Gang":{"OnLoss":"member"}`, `on_loss: must be the same in all groups of a gang`)
	f(`,"Gang":{"Groups":["i"]}`, "", `the job has no group "i"`)
	f(`,"Gang":{"Groups":["g"]}`, "", `not "g" itself`)
}

// Whatever is sent is read or refused; what is valid stays so with its defaults.
func FuzzSchedulerConfiguration(f *testing.F) {
	f.Add(`{"SchedulerAlgorithm":"spread","Policy":"random","Dimensions":["cpu"],"Granularity":{"cpu":1}}`)
	f.Add(`{"SchedulerAlgorithm":"binpack","Levels":[{"Name":"rack","Meta":"r"}],"PreferredCells":[2],"ReservationAfter":"-1s"}`)
	f.Add(`{"SchedulerAlgorithm":"binpack","Levels":[],"ReservationTTL":9}`)
	f.Add(`{"SchedulerAlgorithm":"binpack","Bands":[{"Low":1,"High":40},{"Low":41,"High":100}],"KeepWhole":true,"Cycle":"1m","Aging":0}`)
	f.Add(`{"SchedulerAlgorithm":"binpack","Bands":[{"Low":40,"High":1}],"Cycle":-1,"Aging":2}`)
	f.Add(`[null]`)
	f.Fuzz(func(t *testing.T, text string) {
		var c SchedulerConfiguration
		if json.Unmarshal([]byte(text), &c) != nil || c.Validate() != nil {
			return
		}
		e := c.Effective()
		if err := e.Validate(); err != nil || e.NodeOrder() != c.NodeOrder() || !reflect.DeepEqual(e, e.Effective()) {
			t.Errorf("%s: %+v %v", text, e, err)
		}
		if c.Band(JobMinPriority) != 0 || c.Band(JobMaxPriority) != len(c.PriorityBands())-1 || c.CycleLength() <= 0 {
			t.Errorf("%s: %+v", text, c)
		}
		for _, d := range Dimensions() {
			if c.Step(d) < 1 {
				t.Errorf("%s: a step of %d", text, c.Step(d))
			}
		}
	})
}
