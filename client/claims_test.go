package client

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/structs"
)

// claimer is claims with a protocol of what was granted.
type claimer struct {
	*claims
	t       *testing.T
	granted []string
}

func newClaimer(t *testing.T, has room) *claimer {
	return &claimer{claims: newClaims(func() room { return has }), t: t}
}

func (c *claimer) request(id string, n *need) (bool, []string) {
	return c.claim(id, n, false, func() { c.granted = append(c.granted, id) })
}

func (c *claimer) has(id string, n *need) {
	c.t.Helper()
	if ok, waitsFor := c.request(id, n); !ok {
		c.t.Fatalf("%s waits for %q", id, waitsFor)
	}
}

func (c *claimer) waitsFor(id string, n *need, want ...string) {
	c.t.Helper()
	if ok, got := c.request(id, n); ok || !slices.Equal(got, want) {
		c.t.Fatalf("%s: has it %v, waits for %q, want %q", id, ok, got, want)
	}
}

func (c *claimer) wantGranted(want ...string) {
	c.t.Helper()
	if !slices.Equal(c.granted, want) {
		c.t.Fatalf("granted %q, want %q", c.granted, want)
	}
}

func names(s string) *need  { return &need{names: strings.Fields(s)} }
func memory(mb int64) *need { return &need{room: room{memory: mb}} }

func TestClaimsOfNames(t *testing.T) {
	c := newClaimer(t, room{})
	c.has("a", names("p1 p2"))
	c.has("a", names("p1 p2")) // it has it already
	c.waitsFor("b", names("p2 p3"), "a")
	c.waitsFor("c", names("p2"), "a")
	c.has("d", names("p3")) // a waiting claim reserves nothing
	c.has("e", names(""))
	c.release("a")
	c.wantGranted("c") // d has p3
	c.release("d")
	c.release("c")
	c.wantGranted("c", "b")
	if ok, _ := c.claim("f", names("p2"), true, nil); !ok {
		t.Error("what runs takes by force")
	}
	c.release("b")
	c.waitsFor("g", names("p2"), "f") // f has it still
	c.release("f")
	c.wantGranted("c", "b", "g")
}

// Of processor, memory and disk a newcomer waits for what is leaving, and for nobody else.
func TestClaimsOfRoom(t *testing.T) {
	c := newClaimer(t, room{memory: 100})
	c.has("old", memory(60))
	c.has("victim", memory(40))
	c.has("known-better", memory(20)) // nobody leaves: the servers are right
	c.release("known-better")
	c.leave("victim", true, false)
	c.waitsFor("new", memory(30), "victim")
	c.release("old")
	c.wantGranted("new") // there is room beside the victim
	c.waitsFor("newer", memory(50), "victim")
	c.release("newer") // withdrawn
	c.release("victim")
	c.wantGranted("new")
}

// A newcomer waits for those that were taken back for it, however much room there is.
func TestClaimsWaitForTheirVictims(t *testing.T) {
	c := newClaimer(t, room{memory: 1000})
	after := func(ids ...string) *need { return &need{room: room{memory: 10}, after: ids} }
	c.has("v1", memory(10))
	c.has("v2", memory(10))
	c.leave("v1", true, false)
	c.leave("v2", false, true)
	c.waitsFor("new", after("elsewhere", "v1", "v2"), "v1", "v2")
	c.release("v1")
	c.wantGranted()
	c.suspend("v2")
	c.wantGranted("new")
	c.has("newer", after("v2")) // it is suspended
	// It goes on; those that it made room for do not wait for it.
	c.release("newer")
	c.has("v2", memory(10))
	c.has("newest", after("v2"))
}

// One that was to be suspended and stays after all lets on those that waited for it.
func TestClaimsOfWhoStays(t *testing.T) {
	c := newClaimer(t, room{memory: 100})
	c.has("victim", memory(60))
	c.leave("victim", false, true)
	c.waitsFor("new", &need{room: room{memory: 10}, after: []string{"victim"}}, "victim")
	if !c.leave("victim", false, false) {
		t.Fatal("it stays, and nobody is told")
	}
	c.grantWaiting()
	c.wantGranted("new")
	c.has("other", memory(10))
	if c.leave("other", false, false) || c.leave("other", true, false) || c.leave("nobody", false, false) {
		t.Error("none of these was to release its resources before")
	}
}

// A younger claim passes an older one only if both fit when those have let go that the
// older one waits for.
func TestClaimsDoNotStarve(t *testing.T) {
	c := newClaimer(t, room{memory: 100})
	c.has("victim", memory(70))
	c.has("small", memory(20))
	c.leave("victim", true, false)
	c.waitsFor("large", memory(70), "victim")
	c.has("passes", memory(10))                      // 20 + 10 + 70 will fit
	c.leave("small", true, false)                    // after large came: it does not wait for that
	c.waitsFor("next", memory(5), "small", "victim") // 20 + 10 + 70 + 5 would not
	c.release("victim")
	c.wantGranted("large")
	c.release("small")
	c.wantGranted("large", "next")
}

// A suspended allocation keeps memory and disk, and waits for the rest when it goes on.
func TestClaimsOfTheSuspended(t *testing.T) {
	c := newClaimer(t, room{cpu: 10, memory: 100, disk: 10})
	whole := func() *need {
		return &need{names: []string{"core/1"}, devices: map[string]int{"gpu": 600}, room: room{8, 60, 5}}
	}
	c.has("suspended", whole())
	c.leave("suspended", false, true)
	half := whole()
	half.room.memory = 40
	c.waitsFor("new", half, "suspended")
	c.suspend("suspended")
	c.wantGranted("new")
	c.suspend("suspended") // again: nothing changes
	if c.sum != (room{8, 100, 10}) {
		t.Fatalf("held in all: %+v", c.sum)
	}
	c.waitsFor("suspended", whole(), "new")
	if ok, waitsFor := c.request("suspended", whole()); ok || waitsFor != nil {
		t.Fatalf("asked again: %v, %q", ok, waitsFor)
	}
	c.release("new")
	c.wantGranted("new", "suspended")
	if c.sum != (room{8, 60, 5}) {
		t.Fatalf("held in all: %+v", c.sum)
	}
	// Stopped while it was suspended: what it kept is leaving.
	c.leave("suspended", false, true)
	c.suspend("suspended")
	c.leave("suspended", true, true)
	c.waitsFor("last", memory(50), "suspended")
	c.release("suspended")
	c.wantGranted("new", "suspended", "last")
}

func TestSharesOfADevice(t *testing.T) {
	c := newClaimer(t, room{})
	share := func(n int) *need { return &need{devices: map[string]int{"gpu": n}} }
	c.has("a", share(500))
	c.has("b", share(300))
	c.waitsFor("c", share(300), "a", "b")
	c.waitsFor("d", share(1000), "a", "b")
	c.release("b")
	c.wantGranted("c")
	c.release("a")
	c.release("c")
	c.wantGranted("c", "d")
}

// Whatever comes and goes, nobody holds what another holds, no more is given than there
// is while anybody leaves, nobody waits for what is free, and the oldest that waits is
// served when those have gone that left when it came.
func TestClaimsAreExclusive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const total = 20
		c := newClaims(func() room { return room{memory: total} })
		serves, waits := map[string]*need{}, map[string]*need{}
		leaving, granted := map[string]bool{}, map[string]map[string]bool{}
		sum := func(m map[string]*need, left bool) (mb int64) {
			for id, n := range m {
				if left || !leaving[id] {
					mb += n.room.memory
				}
			}
			return mb
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			id := fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "id"))
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				delete(serves, id)
				delete(waits, id)
				delete(leaving, id)
				c.release(id)
			case 1:
				if serves[id] != nil {
					leaving[id] = true
					c.leave(id, true, false)
				}
			default:
				if serves[id] != nil || waits[id] != nil {
					continue
				}
				n := &need{
					names: rapid.SliceOfNDistinct(rapid.StringMatching("[a-d]"), 0, 2, rapid.ID[string]).Draw(t, "names"),
					room:  room{memory: int64(rapid.IntRange(0, 8).Draw(t, "memory"))},
				}
				if sum(serves, false)+sum(waits, true)+n.room.memory > total {
					continue // the servers place no more than fits without those that leave
				}
				waits[id] = n
				granted[id] = maps.Clone(leaving)
				if ok, _ := c.claim(id, n, false, func() { serves[id] = waits[id]; delete(waits, id) }); ok {
					serves[id] = n
					delete(waits, id)
				}
			}
			taken := map[string]string{}
			for who, n := range serves {
				for _, name := range n.names {
					if other, ok := taken[name]; ok {
						t.Fatalf("%s is held by %s and %s", name, who, other)
					}
					taken[name] = who
				}
			}
			if mb := sum(serves, true); mb > total {
				t.Fatalf("%d given of %d", mb, total)
			}
			for who, n := range waits {
				gone := !slices.ContainsFunc(slices.Collect(maps.Keys(granted[who])), func(id string) bool { return leaving[id] })
				free := !slices.ContainsFunc(n.names, func(name string) bool { return taken[name] != "" })
				if free && (len(leaving) == 0 || gone) {
					t.Fatalf("%s waits for nothing", who)
				}
			}
		}
	})
}

func TestNeed(t *testing.T) {
	a := &structs.Allocation{TaskGroup: "g", PreemptedAllocations: []string{"v"}, AllocatedResources: &structs.AllocatedResources{
		Shared: structs.AllocatedSharedResources{DiskMB: 7, Ports: []structs.PortMapping{{Label: "x", Value: 80, HostIP: "10.0.0.1"}}},
		Tasks: map[string]*structs.AllocatedTaskResources{"t": {
			Cpu:     structs.AllocatedCpuResources{CpuShares: 500, ReservedCores: []uint16{3, 1}},
			Memory:  structs.AllocatedMemoryResources{MemoryMB: 64},
			Devices: []*structs.AllocatedDeviceResource{{DeviceIDs: []string{"gpu-0"}}},
		}},
	}}
	n := needOf(a)
	if got := strings.Join(n.names, " "); got != "core/1 core/3 port/10.0.0.1/80" {
		t.Errorf("names %q", got)
	}
	if n.devices["gpu-0"] != wholeDevice || n.room != (room{500, 64, 7}) || !slices.Equal(n.after, []string{"v"}) {
		t.Errorf("needs %+v", n)
	}
	a.AllocatedResources.Shared.Networks = []*structs.NetworkResource{{
		IP: "10.0.0.1", ReservedPorts: []structs.Port{{Label: "x", Value: 80, IgnoreCollision: true}},
	}}
	if got := strings.Join(needOf(a).names, " "); got != "core/1 core/3" {
		t.Errorf("with a port that ignores collisions it needs %q", got)
	}
	a.AllocatedResources.Tasks["t"].Devices[0].Share = 500
	if got := needOf(a).devices["gpu-0"]; got != 500 {
		t.Errorf("a shared device is claimed with %d", got)
	}
}

func TestRoomOf(t *testing.T) {
	n := &structs.Node{NodeResources: &structs.NodeResources{
		Cpu:    structs.NodeCpuResources{CpuShares: 4000, TotalCpuCores: 4},
		Memory: structs.NodeMemoryResources{MemoryMB: 1000}, Disk: structs.NodeDiskResources{DiskMB: 100},
	}, ReservedResources: &structs.NodeReservedResources{
		Cpu: structs.NodeReservedCpuResources{ReservedCpuCores: []uint16{0}}, Memory: structs.NodeMemoryResources{MemoryMB: 200},
	}}
	if got := roomOf(n); got != (room{3000, 800, 100}) {
		t.Errorf("%+v", got)
	}
	if got := roomOf(&structs.Node{}); got != (room{}) {
		t.Errorf("nothing known: %+v", got)
	}
}

func TestWaitText(t *testing.T) {
	f := func(want string, ids ...string) {
		t.Helper()
		if got := waitText(ids); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	f("Waiting for resources on the node")
	f("Waiting for allocation 12345678 to release its resources", "12345678-9")
	f("Waiting for allocation 12345678 and another to release their resources", "12345678-9", "b")
	f("Waiting for allocation 12345678 and 2 others to release their resources", "12345678-9", "b", "c")
}
