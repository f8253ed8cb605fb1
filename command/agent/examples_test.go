package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/client/sim"
	"github.com/nomadish/nomadish/command/agent/config"
)

// The shapes and agent files among the examples are read. examples/racks.hcl is two
// racks of two nodes with 8 GPUs each, as its jobs and the README take it to be.
func TestExampleLayouts(t *testing.T) {
	if _, err := sim.ParseFile("../../examples/demo/dgx.hcl"); err != nil {
		t.Error(err)
	}
	layouts, err := sim.ParseFile("../../examples/racks.hcl")
	if err != nil {
		t.Fatal(err)
	}
	racks := map[string]int{}
	for _, n := range sim.Nodes(layouts, sim.Options{Seed: "s"}) {
		racks[n.Meta["rack"]]++
		if d := n.NodeResources.Devices; len(d) != 1 || len(d[0].Instances) != 8 {
			t.Errorf("%s: %+v", n.Name, d)
		}
	}
	if len(racks) != 2 || racks["r1"] != 2 || racks["r2"] != 2 {
		t.Errorf("racks %v", racks)
	}
	if _, err := sim.ParseFile("../../examples/machine.hcl"); err != nil {
		t.Error(err)
	}
	teams, err := sim.ParseFile("../../examples/virtual-clusters/nodes.hcl")
	if err != nil || len(sim.Nodes(teams, sim.Options{Seed: "s"})) != 4 {
		t.Errorf("the nodes of docs/guides/virtual-clusters.md: %v", err)
	}
	for _, name := range []string{"agent.hcl", "server.hcl"} {
		c := config.Default()
		warnings, err := c.Load(filepath.Join("../../examples", name))
		if err == nil {
			err = errors.Join(c.Validate(), checkReachable(c), checkExposed(c))
		}
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v, warnings %v", name, err, warnings)
		}
	}
}

var wholeFile = regexp.MustCompile("(?ms)^```hcl[^\n]*\n(name .*?)^```$")

// The files of agents that guides show whole are complete: the agent starts with them on an address that others reach, and it does not without
// client certificates or the keys of gossip.
func TestDocumentedAgents(t *testing.T) {
	found := 0
	for _, guide := range []string{"servers.md", "three-servers.md", "clients.md"} {
		text, err := os.ReadFile("../../docs/guides/" + guide)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range wholeFile.FindAllStringSubmatch(string(text), -1) {
			found++
			t.Run(fmt.Sprintf("%s-%d", guide, found), func(t *testing.T) { documentedAgent(t, m[1]) })
		}
	}
	if found < 4 {
		t.Errorf("%d files: this test does not find them", found)
	}
}

func documentedAgent(t *testing.T, block string) {
	block = strings.Replace(block, `"…"`, `"MDEyMzQ1Njc4OWFiY2RlZg=="`, 1)
	block = strings.Replace(block, `"…"`, `"ZmVkY2JhOTg3NjU0MzIxMA=="`, 1)
	c := config.Default()
	warnings, err := c.Merge("docs.hcl", []byte(block))
	if err == nil {
		err = errors.Join(c.Validate(), checkReachable(c), checkExposed(c))
	}
	if err != nil || len(warnings) > 0 || len(exposures(c)) > 0 {
		t.Errorf("%v, warnings %v, open %v:\n%s", err, warnings, exposures(c), block)
	}
	c.TLS.VerifyHTTPSClient = false
	if checkExposed(c) == nil {
		t.Error("the agent starts without client certificates")
	}
	c.TLS.VerifyHTTPSClient = true
	c.Server.Encrypt, c.Client.GossipEncrypt = "", ""
	if checkExposed(c) == nil {
		t.Error("the agent starts without the keys of gossip")
	}
}
