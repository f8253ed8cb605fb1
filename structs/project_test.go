package structs

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestWrongProjects(t *testing.T) {
	many := make([]string, MaxProjectMembers+1)
	for i := range many {
		many[i] = fmt.Sprint("u", i)
	}
	for want, p := range map[string]*Project{
		"missing name of the project": {},
		"invalid name":                {Name: "a/b"},
		"flow and steps are both":     {Name: "a", Flow: "f", Steps: []string{"s"}},
		`flow: "a b": invalid name`:   {Name: "a", Flow: "a b"},
		`users: "a:b"`:                {Name: "a", Users: []string{"a:b"}},
		`groups: "g" is stated twice`: {Name: "a", Groups: []string{"g", "g"}},
		"managers: 1001 are stated":   {Name: "a", Managers: many},
		`steps: "a b"`:                {Name: "a", Steps: []string{"a b"}},
		"steps: 65 are stated":        {Name: "a", Steps: many[:65]},
		"objective: must be":          {Name: "a", Objective: "speed"},
		"throughput is missing":       {Name: "a", Objective: "throughput"},
		"throughput is stated":        {Name: "a", Throughput: &Throughput{Jobs: 1, Per: time.Hour}},
		"jobs: must be":               {Name: "a", Objective: "throughput", Throughput: &Throughput{Per: time.Hour}},
		"per: must be":                {Name: "a", Objective: "throughput", Throughput: &Throughput{Jobs: 1}},
	} {
		if err := p.Validate(); err == nil || CodeOf(err) != CodeBadRequest || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", p, err, want)
		}
	}
	good := &Project{Name: "a", Users: []string{"Ada.L", `DOM\ada`}, Objective: "throughput", Throughput: &Throughput{Jobs: 1, Per: time.Hour}}
	c := good.Copy()
	c.Users[0], c.Throughput.Jobs = "x", 2
	if err := good.Validate(); err != nil || good.Users[0] != "Ada.L" || good.Throughput.Jobs != 1 {
		t.Errorf("%v %+v", err, good)
	}
}

func TestValidWeek(t *testing.T) {
	for text, want := range map[string]bool{
		"2026-W48": true, "2026-W53": true, "2027-W52": true, "2027-W53": false, "2026-W54": false, "2026-W00": false, "2026-W1": false,
		"": false, "2026-W048": false, " 026-W01": false, "+026-W01": false, "2026-w48": false, "0000-W01": false, "2026-W48 ": false,
	} {
		if ValidWeek(text) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
}

// A node that states no slots offers its cores, unless it has devices; what no node has is refused.
func TestNodeSlots(t *testing.T) {
	n := &Node{NodeResources: &NodeResources{Cpu: NodeCpuResources{TotalCpuCores: 16}}}
	add := func() string {
		counts := map[string]int{"big": 1}
		n.AddSlots(counts)
		return fmt.Sprint(counts)
	}
	if got := add(); got != "map[batch:16 big:1]" {
		t.Error(got)
	}
	n.NodeResources.Slots = map[string]int{"big": 2}
	if got := add(); got != "map[big:3]" {
		t.Error(got)
	}
	n.NodeResources.Slots, n.NodeResources.Devices = nil, []*NodeDeviceResource{{}}
	if got := add(); got != "map[big:1]" {
		t.Error(got)
	}
	for _, bad := range []map[string]int{{"a b": 1}, {"": 1}, {"batch": -1}, {"batch": MaxNodeSlots + 1}} {
		if err := (&Node{NodeResources: &NodeResources{Slots: bad}}).CheckLimits(); err == nil || !strings.Contains(err.Error(), "slots") {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
