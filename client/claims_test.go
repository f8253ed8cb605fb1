package client

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/structs"
)

func TestClaims(t *testing.T) {
	c := newClaims()
	var granted []string
	ask := func(id, needs string) bool {
		return c.claim(id, strings.Fields(needs), false, func() { granted = append(granted, id) })
	}
	want := func(ok bool, what string) {
		t.Helper()
		if !ok {
			t.Error(what)
		}
	}
	want(ask("a", "p1 p2"), "a is first")
	want(ask("a", "p1 p2"), "a has it already")
	want(!ask("b", "p2 p3"), "b must wait for a")
	want(!ask("c", "p2"), "c must wait for a")
	want(ask("d", "p3"), "a waiting claim holds nothing")
	want(ask("e", ""), "e needs nothing")
	c.release("a")
	want(slices.Equal(granted, []string{"c"}), fmt.Sprintf("granted %q, want c alone: d has p3", granted))
	c.release("d")
	c.release("c")
	want(slices.Equal(granted, []string{"c", "b"}), fmt.Sprintf("granted %q", granted))
	want(c.claim("f", []string{"p2"}, true, nil), "what runs takes by force")
	c.release("f")
	want(ask("g", "p2"), "after f's end p2 is free")
}

// Whatever comes and goes, nobody holds what another holds, and nobody waits for
// what is free.
func TestClaimsAreExclusive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClaims()
		holds, waits := map[int][]string{}, map[int][]string{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			id := rapid.IntRange(0, 7).Draw(t, "id")
			name := fmt.Sprint(id)
			if rapid.Bool().Draw(t, "release") {
				delete(holds, id)
				delete(waits, id)
				c.release(name)
			} else if holds[id] == nil && waits[id] == nil {
				needs := rapid.SliceOfNDistinct(rapid.StringMatching("[a-d]"), 1, 3, rapid.ID[string]).Draw(t, "needs")
				if c.claim(name, needs, false, func() { holds[id] = waits[id]; delete(waits, id) }) {
					holds[id] = needs
				} else {
					waits[id] = needs
				}
			}
			taken := map[string]int{}
			for who, list := range holds {
				for _, n := range list {
					if other, ok := taken[n]; ok {
						t.Fatalf("%s is held by %d and %d", n, who, other)
					}
					taken[n] = who
				}
			}
			for who, list := range waits {
				if !slices.ContainsFunc(list, func(n string) bool { _, ok := taken[n]; return ok }) {
					t.Fatalf("%d waits for %q, which are free", who, list)
				}
			}
		}
	})
}

func TestNeed(t *testing.T) {
	a := &structs.Allocation{TaskGroup: "g", AllocatedResources: &structs.AllocatedResources{
		Shared: structs.AllocatedSharedResources{Ports: []structs.PortMapping{{Label: "x", Value: 80, HostIP: "10.0.0.1"}}},
		Tasks: map[string]*structs.AllocatedTaskResources{"t": {
			Cpu:     structs.AllocatedCpuResources{ReservedCores: []uint16{3, 1}},
			Devices: []*structs.AllocatedDeviceResource{{DeviceIDs: []string{"gpu-0"}}},
		}},
	}}
	if got := strings.Join(need(a), " "); got != "core/1 core/3 device/gpu-0 port/10.0.0.1/80" {
		t.Errorf("needs %q", got)
	}
	a.AllocatedResources.Shared.Networks = []*structs.NetworkResource{{
		IP: "10.0.0.1", ReservedPorts: []structs.Port{{Label: "x", Value: 80, IgnoreCollision: true}},
	}}
	if got := strings.Join(need(a), " "); got != "core/1 core/3 device/gpu-0" {
		t.Errorf("with a port that ignores collisions it needs %q", got)
	}
	a.AllocatedResources.Tasks["t"].Devices[0].Share = 500
	if got := strings.Join(need(a), " "); strings.Contains(got, "device") {
		t.Errorf("a shared device is claimed whole: %q", got)
	}
}
