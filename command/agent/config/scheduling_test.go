package config

import (
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
}
