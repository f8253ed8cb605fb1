package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// The site's levels are those above "node", lowest first.
func TestSiteLevels(t *testing.T) {
	f := func(topology, want, problem string) {
		t.Helper()
		c := merged(t, "server {\n topology {\n"+topology+"\n}\n}")
		levels, err := c.Server.Topology.SiteLevels()
		switch {
		case problem != "" && (err == nil || !strings.Contains(err.Error(), problem)):
			t.Errorf("%s: have %v, want %s", topology, err, problem)
		case problem == "" && err != nil:
			t.Errorf("%s: %v", topology, err)
		case problem == "":
			var got []string
			for _, l := range levels {
				got = append(got, l.Name+"="+l.Meta)
			}
			if text := strings.Join(got, " "); text != want || (levels == nil) != (topology == "") {
				t.Errorf("%s: have %q, want %q", topology, text, want)
			}
		}
	}
	const rack = "\nlevel \"rack\" {\n meta = \"r\"\n}"
	f(``, "", "")
	f(rack, "rack=r", "")
	f(`levels = ["gpu", "pcie", "socket", "node", "rack"]`+rack, "rack=r", "")
	f(`levels = ["mig", "gpu", "pcie", "nvlink", "node", "rack", "pod"]`+rack, "rack=r pod=pod", "")
	f(`levels = ["nvlink", "gpu", "tray", "node", "rack"]`, "rack=rack", "")
	f(`levels = ["rack", "pod"]`, "rack=rack pod=pod", "")
	f(`levels = ["gpu", "node"]`, "", "")
	f(`levels = []`, "", "")
	f("level \"pod\" {}"+rack, "pod=pod rack=r", "")
	f(`levels = ["pcie", "gpu", "node"]`, "", `"gpu" is below "pcie"; list the lowest first`)
	f(`levels = ["node", "gpu"]`, "", `"gpu" lies within nodes`)
	f(`levels = ["node", "rack", "nvlink"]`, "", `"nvlink" lies within nodes`)
	f(`levels = ["rack", "pcie"]`, "", `"pcie" lies within nodes`)
	f(`levels = ["node", "rack", "rack"]`, "", `"rack" is listed twice`)
	f(`levels = ["node", "pod"]`+rack, "", `level "rack": levels does not list it above "node": node, pod`)
	f(`levels = ["rack", "node"]`+rack, "", `level "rack": levels does not list it above "node"`)
	f(rack+rack, "", `level "rack" is stated twice`)
	f(`levels = ["node", "a b"]`, "", "named by letters")
	f("level \"node\" {}", "", "is a level within nodes")
}

// What is stated seeds a new cluster's configuration, what is not is its default.
func TestSchedulerConfigOfANewCluster(t *testing.T) {
	f := func(src string, want func(*structs.SchedulerConfiguration)) {
		t.Helper()
		got, err := merged(t, "server {\n"+src+"\n}").Server.SchedulerConfig()
		expected := structs.DefaultSchedulerConfiguration()
		want(&expected)
		if err != nil || !reflect.DeepEqual(got, expected) {
			t.Errorf("%s: have %+v %v, want %+v", src, got, err, expected)
		}
	}
	f(``, func(*structs.SchedulerConfiguration) {})
	f(`default_scheduler_config { scheduler_algorithm = "spread" }`, func(c *structs.SchedulerConfiguration) { c.SchedulerAlgorithm = "spread" })
	f(`scheduling { policy = "spread" }`, func(c *structs.SchedulerConfiguration) { c.SchedulerAlgorithm = "spread" })
	f(`default_scheduler_config {
  node_limit_for_feasibility_checks = 7
  memory_oversubscription_enabled   = true
  preemption_config { batch_scheduler_enabled = true }
}
scheduling {
  policy            = "next-fit"
  dimensions        = ["memory", "gpus"]
  granularity       = { memory = 512 }
  preferred_cells   = [4]
  reservation_after = "-1s"
  reservation_ttl   = "2h"
}
topology {
  level "rack" { meta = "r" }
}`, func(c *structs.SchedulerConfiguration) {
		c.NodeLimitForFeasibilityChecks, c.MemoryOversubscriptionEnabled, c.PreemptionConfig.BatchSchedulerEnabled = 7, true, true
		c.Policy, c.Dimensions, c.Granularity = "next-fit", []string{"memory", "gpus"}, map[string]int64{"memory": 512}
		c.PreferredCells, c.ReservationAfter, c.ReservationTTL = []int{4}, -time.Second, 2*time.Hour
		c.Levels = []structs.TopologyLevel{{Name: "rack", Meta: "r"}}
	})
	f(`scheduling {
  bands      = [[1, 4], [5, 7], [8, 10]]
  keep_whole = true
  cycle      = "1m"
  aging      = 0
  preemption { service_scheduler_enabled = true }
}
default_scheduler_config {
  preemption_config {
    sysbatch_scheduler_enabled = true
    service_scheduler_enabled  = true
  }
}`, func(c *structs.SchedulerConfiguration) {
		c.Bands = []structs.PriorityBand{{Low: 1, High: 4}, {Low: 5, High: 7}, {Low: 8, High: 10}}
		off := 0
		c.KeepWhole, c.Cycle, c.Aging = true, time.Minute, &off
		c.PreemptionConfig.ServiceSchedulerEnabled, c.PreemptionConfig.SysBatchSchedulerEnabled = true, true
	})
	f(`calendar { time_zone = "Europe/Berlin" }`, func(c *structs.SchedulerConfiguration) {
		c.Calendar = &structs.CalendarConfiguration{TimeZone: "Europe/Berlin"}
	})
	// Each switch is its own: what is not stated stays as it is in a new cluster.
	for _, c := range []struct {
		name string
		at   func(*structs.PreemptionConfig) *bool
	}{
		{"system", func(p *structs.PreemptionConfig) *bool { return &p.SystemSchedulerEnabled }},
		{"sysbatch", func(p *structs.PreemptionConfig) *bool { return &p.SysBatchSchedulerEnabled }},
		{"batch", func(p *structs.PreemptionConfig) *bool { return &p.BatchSchedulerEnabled }},
		{"service", func(p *structs.PreemptionConfig) *bool { return &p.ServiceSchedulerEnabled }},
	} {
		for _, on := range []bool{true, false} {
			text := fmt.Sprintf("{ %s_scheduler_enabled = %t }", c.name, on)
			for _, block := range []string{"scheduling {\n preemption " + text, "default_scheduler_config {\n preemption_config " + text} {
				f(block+"\n}", func(want *structs.SchedulerConfiguration) { *c.at(&want.PreemptionConfig) = on })
			}
		}
	}
}

// fullSlots are the settings of slots in testdata/full.hcl.
func fullSlots() structs.SlotSettings {
	grace, none, suspended := 90*time.Second, time.Duration(0), 2*time.Hour
	allocated, requeue, requeues, light := 50, 5, 0, 0.5
	return structs.SlotSettings{
		Types: []structs.SlotType{{Name: "batch", Cores: 2, MemoryMB: 4096}, {Name: "gpu", GPUs: 1, Kind: "H100", Grace: &none}},
		Grace: &grace, AllocatedBonus: &allocated, RequeueBonus: &requeue, MaxRequeues: &requeues, SuspendLimit: &suspended, Light: &light,
	}
}

// What a file states of slots seeds a new cluster's configuration; what is at its default is left out.
func TestSlotsOfANewCluster(t *testing.T) {
	f := func(src, want string) {
		t.Helper()
		c, err := merged(t, "server {\n scheduling {\n"+src+"\n}\n}").Server.SchedulerConfig()
		got, _ := json.Marshal(c.Slots)
		if err != nil || string(got) != want {
			t.Errorf("%s: have %s %v, want %s", src, got, err, want)
		}
	}
	f("", "null")
	f("grace = \"60s\"\nallocated_bonus = 100\nrequeue_bonus = 10\nmax_requeues = 3\nsuspend_limit = \"1h\"\nlight = 0.25\nslot \"batch\" { cores = 1 }", "null")
	f("max_requeues = 0\nslot \"wide\" {}\nslot \"batch\" { cores = 2 }", `{"Types":[{"Name":"batch","Cores":2},{"Name":"wide","Cores":1}],"MaxRequeues":0}`)
	f("grace = \"0s\"\nslot \"interactive-light\" { grace = \"0s\" }\nslot \"batch\" { grace = \"5s\" }",
		`{"Types":[{"Name":"batch","Cores":1,"Grace":5000000000}],"Grace":0}`)
}

// A wrong setting of slots is refused with its key and line.
func TestWrongSlots(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		c := Default()
		c.Server.Enabled = true
		_, err := c.Merge("b.hcl", []byte("server {\n scheduling {\n"+line+"\n}\n}"))
		if err == nil {
			err = c.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: have %v, want %s", line, err, want)
		}
	}
	f(`grace = "-1s"`, "b.hcl:3: server.scheduling.grace: -1s: must not be negative")
	f(`grace = 60`, `b.hcl:3: server.scheduling.grace: want a duration such as "30s" or "1h30m", have 60`)
	f(`allocated_bonus = -1`, "b.hcl:3: server.scheduling.allocated_bonus: -1: must be 0 to 1000000")
	f(`requeue_bonus = 1.5`, "b.hcl:3: server.scheduling.requeue_bonus: want a whole number")
	f(`requeue_bonus = -2`, "b.hcl:3: server.scheduling.requeue_bonus: -2: must be")
	f(`max_requeues = 1000001`, "b.hcl:3: server.scheduling.max_requeues: 1000001: must be")
	f(`suspend_limit = "0s"`, "b.hcl:3: server.scheduling.suspend_limit: 0s: must be more than 0")
	f(`light = 1.5`, "b.hcl:3: server.scheduling.light: 1.5: must be 0 to 1")
	f("slot \"a\" {}\nslot \"b\" {\n kind = \"H100\"\n}\nslot \"c\" {}", `b.hcl:4: server.scheduling.slot["b"]: kind "H100" is stated without gpus`)
	f("slot \"a\" {}\nslot \"b\" {\n core = 1\n}", `b.hcl:5: server.scheduling.slot["b"].core: unknown; did you mean "cores"?`)
	f("slot \"a\" {}\nslot \"a\" {}", `b.hcl:4: server.scheduling.slot: type "a" is stated twice`)
	f("slot \"a b\" {}", `b.hcl:3: server.scheduling.slot["a b"]: a type of slots is named by`)
	f("slot \"a\" { cores = -1 }", `b.hcl:3: server.scheduling.slot["a"]: cores, memory and gpus must not be negative`)
	f("slot {\n cores = 1\n}", "server.scheduling.slot: needs a label: write server.scheduling.slot \"NAME\" { … }")
	f("slots \"a\" {}", `did you mean "slot"?`)
}

// A node's slots are refused with the type and its line.
func TestWrongNodeSlots(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		c := Default()
		c.Client.Enabled, c.Client.Servers, c.DataDir = true, []string{"10.0.0.1"}, "/data"
		_, err := c.Merge("b.hcl", []byte("client {\n slots {\n"+line+"\n}\n}"))
		if err == nil {
			err = c.Validate()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: have %v, want %s", line, err, want)
		}
	}
	f("batch = 16\ninteractive-light = 0", "")
	f("", "")
	f("batch = 1\ngpu = -1", "b.hcl:4: client.slots.gpu: -1: must be 0 to 65536")
	f("batch = 65537", "b.hcl:3: client.slots.batch: 65537: must be 0 to 65536")
	f("batch = \"all\"", `b.hcl:3: client.slots.batch: want a number, have "all"; write it as in slots { batch = 16 }`)
	f("batch = 1.5", "client.slots.batch: want a whole number")
	f("\"a b\" = 1", `client.slots.a b: "a b": a type of slots is named by`)
	var many strings.Builder
	for i := range 65 {
		fmt.Fprintf(&many, "t%d = 1\n", i)
	}
	f(many.String(), "b.hcl:2: client.slots: 65 types; at most 64 are allowed")
	if _, err := Default().Merge("b.hcl", []byte("client {\n slots = 3\n}")); err == nil || !strings.Contains(err.Error(), "b.hcl:2: client.slots: want names with values") {
		t.Error(err)
	}
}

// What is no band, switch or duration is refused where it stands, and how it is written is said.
func TestWrongScheduling(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		_, err := Default().Merge("b.hcl", []byte("server {\n scheduling {\n"+line+"\n}\n}"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: have %v, want %s", line, err, want)
		}
	}
	const how = "; write it as in bands = [[1, 40], [41, 70], [71, 100]]"
	f(`bands = "1-40"`, "b.hcl:3: server.scheduling.bands: want a list, have a value"+how)
	f(`bands = [1, 40]`, "b.hcl:3: server.scheduling.bands[0]: want a list, have a value"+how)
	f("bands = [[1, 40],\n[\"high\", 100]]", `b.hcl:4: server.scheduling.bands[1][0]: want a number, have "high"`+how)
	f(`bands = [[1, 40.5]]`, "b.hcl:3: server.scheduling.bands[0][1]: want a whole number, have 40.5"+how)
	f(`bands = [[1, null]]`, "an element must not be null"+how)
	f(`bands = [{ low = 1, high = 40 }]`, "want a list, have a block"+how)
	f(`keep_whole = "often"`, `b.hcl:3: server.scheduling.keep_whole: want true or false, have "often"`)
	f(`cycle = 20`, `b.hcl:3: server.scheduling.cycle: want a duration such as "30s" or "1h30m", have 20`)
	f(`aging = "slow"`, `b.hcl:3: server.scheduling.aging: want a number, have "slow"`)
	f("preemption {\n batch = true\n}", `b.hcl:4: server.scheduling.preemption.batch: unknown; did you mean "batch_scheduler_enabled"?`)
	f("band = [[1, 40]]", `did you mean "bands"?`)
}
