package picture

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

var rewrite = flag.Bool("rewrite", false, "write the pictures of the documentation anew")

// recorded is what `nomadish topology -json` printed of examples/racks.hcl with a gang, a tenant's job, and one that borrows from the tenant.
func recorded(t *testing.T) *structs.Topology {
	t.Helper()
	src, err := os.ReadFile("testdata/topology.json")
	if err != nil {
		t.Fatal(err)
	}
	var topology structs.Topology
	if err := json.Unmarshal(src, &topology); err != nil {
		t.Fatal(err)
	}
	return &topology
}

// TestPictureOfDocumentation: the picture that README shows is what the command draws today.
func TestPictureOfDocumentation(t *testing.T) {
	const path = "../../docs/images/topology.svg"
	drawn := Topology(recorded(t))
	if *rewrite {
		if err := os.WriteFile(path, drawn, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, drawn) {
		t.Errorf("%s is not what is drawn now (%v): go test ./command/picture -rewrite", path, err)
	}
}

// TestDevices: what is odd about devices is drawn, what names hold does not break out of them, and the picture is XML.
func TestDevices(t *testing.T) {
	topology := recorded(t)
	topology.Nodes[0].Name = `<b>"&`
	cell := topology.Nodes[0].Cells.Cells[0].Cells[0]
	cell.Members[0].Healthy = false
	cell.Members[0].Usages = nil
	cell.Members[1].Usages = []*structs.DeviceUsage{
		{Name: "half.g[0]", JobID: "half", Namespace: "default", Share: 500}, {Name: "rest.g[0]", JobID: "rest", Namespace: "default", Share: 700},
	}
	drawn := string(Topology(topology))
	for _, want := range []string{`class="idle bad"`, ">bad</text>", "half.g[0], rest.g[0]", "&lt;b&gt;&#34;&amp;", ">half</text>"} {
		if !strings.Contains(drawn, want) {
			t.Errorf("%s is not drawn", want)
		}
	}
	for d := xml.NewDecoder(strings.NewReader(drawn)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if again := string(Topology(topology)); again != drawn {
		t.Error("the same topology gives another picture")
	}
}

// TestReservedDevices: devices that a workflow has reserved are framed, what others use of them is striped, and the legend names the workflow.
func TestReservedDevices(t *testing.T) {
	topology := recorded(t)
	cell := topology.Nodes[0].Cells.Cells[0].Cells[0]
	ids := make([]string, 0, len(cell.Members))
	for _, m := range cell.Members {
		m.Usages, m.Lent = nil, false
		ids = append(ids, m.ID)
	}
	cell.Members[0].Usages = []*structs.DeviceUsage{{Name: "chip/1/a.g[0]", JobID: "chip/1/a", Namespace: "team", Share: 1000}}
	frames := func(pending bool) (framed, striped int, drawn string) {
		topology.Nodes[0].Workflows = []*structs.ReservedPart{{Namespace: "team", Workflow: "chip", Pending: pending, DeviceIDs: ids}}
		drawn = string(Topology(topology))
		return strings.Count(drawn, `class="flow f0"`), strings.Count(drawn, `class="lines"`), drawn
	}
	_, before, _ := frames(true)
	framed, striped, drawn := frames(false)
	if framed != len(ids)+1 || striped != before || !strings.Contains(drawn, ">framed: reserved by workflow team/chip</text>") ||
		!strings.Contains(drawn, ids[0]+": chip/1/a.g[0]; reserved by workflow team/chip<") {
		t.Errorf("%d of %d framed, %d striped of %d", framed, len(ids), striped, before)
	}
	cell.Members[1].Usages = []*structs.DeviceUsage{{Name: "night.g[0]", JobID: "night", Namespace: "team", Share: 1000}}
	if _, lent, _ := frames(false); lent <= striped {
		t.Errorf("%d striped", lent)
	}
	if framed, _, _ := frames(true); framed != 0 {
		t.Errorf("%d framed of what is not posted", framed)
	}
}

// TestNodesThatTakeNoWork: what is unused on a node that is down, drained or not eligible is not free, and the node's state stands below its name; so do workflows
// for which what comes free is kept; a device that is bad is not free.
func TestNodesThatTakeNoWork(t *testing.T) {
	for want, change := range map[string]func(*structs.TopologyNode){
		"down":       func(n *structs.TopologyNode) { n.Status = structs.NodeStatusDown },
		"draining":   func(n *structs.TopologyNode) { n.Drain, n.SchedulingEligibility = true, structs.NodeIneligible },
		"ineligible": func(n *structs.TopologyNode) { n.SchedulingEligibility = structs.NodeIneligible },
	} {
		topology := recorded(t)
		n := topology.Nodes[0]
		members := n.Cells.Cells[0].Cells[0].Members
		members[0].Usages, members[1].Usages = nil, nil
		members[1].Healthy, members[1].HealthDescription = false, "XID 79"
		n.Workflows = []*structs.ReservedPart{{Namespace: structs.DefaultNamespace, Workflow: "w", Pending: true}}
		change(n)
		drawn := string(Topology(topology))
		for _, text := range []string{
			`class="idle off"`, ">" + want + "</text>", members[0].ID + ": unused; its node is " + want + "<", members[1].ID + ": bad: XID 79; its node is " + want + "<",
			">on a node that takes no work</text>", ">kept for workflow w</text>",
		} {
			if !strings.Contains(drawn, text) {
				t.Errorf("%s: %s is not drawn", want, text)
			}
		}
		if strings.Contains(drawn, members[1].ID+": free") || strings.Contains(drawn, members[0].ID+": free") {
			t.Errorf("%s: it is free", want)
		}
	}
}
