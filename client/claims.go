package client

import (
	"fmt"
	"slices"
	"sync"

	"github.com/nomadish/nomadish/structs"
)

// claims holds a new allocation back until the ports, cores and devices that it
// was given are free: the servers count what is being stopped as free at once, the
// node cannot.
type claims struct {
	mu      sync.Mutex
	holder  map[string]string   // what is claimed → allocation
	held    map[string][]string // allocation → what it holds
	waiting []claim             // oldest first
}

type claim struct {
	id    string
	needs []string
	grant func()
}

func newClaims() *claims {
	return &claims{holder: map[string]string{}, held: map[string][]string{}}
}

// need lists what an allocation needs for itself. A port that ignores collisions is
// shared on purpose (SO_REUSEPORT): nobody holds it.
func need(a *structs.Allocation) []string {
	r := a.AllocatedResources
	if r == nil {
		return nil
	}
	var out []string
	shares := map[string]bool{} // labels of ports that ignore collisions
	port := func(label, ip string, n int) {
		if n > 0 && !shares[label] {
			out = append(out, fmt.Sprintf("port/%s/%d", ip, n))
		}
	}
	networks := func(list []*structs.NetworkResource) {
		for _, n := range list {
			for _, p := range slices.Concat(n.ReservedPorts, n.DynamicPorts) {
				port(p.Label, n.IP, p.Value)
			}
		}
	}
	for _, n := range r.Shared.Networks {
		for _, p := range n.ReservedPorts {
			shares[p.Label] = p.IgnoreCollision
		}
	}
	for _, p := range r.Shared.Ports {
		port(p.Label, p.HostIP, p.Value)
	}
	networks(r.Shared.Networks)
	for _, t := range r.Tasks {
		networks(t.Networks)
		for _, c := range t.Cpu.ReservedCores {
			out = append(out, fmt.Sprintf("core/%d", c))
		}
		for _, d := range t.Devices {
			if d.Share > 0 {
				continue // others may hold parts of it at the same time
			}
			for _, id := range d.DeviceIDs {
				out = append(out, "device/"+id)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// claim asks for what an allocation needs. true: it has it. Otherwise grant is
// called, on the goroutine of a release, once it has. An allocation that runs
// already takes what it needs by force.
func (c *claims) claim(id string, needs []string, force bool, grant func()) bool {
	if len(needs) == 0 {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.held[id]; ok {
		return true
	}
	if force || c.free(needs) {
		c.take(id, needs)
		return true
	}
	c.waiting = append(c.waiting, claim{id, needs, grant})
	return false
}

func (c *claims) free(needs []string) bool {
	for _, n := range needs {
		if _, taken := c.holder[n]; taken {
			return false
		}
	}
	return true
}

func (c *claims) take(id string, needs []string) {
	c.held[id] = needs
	for _, n := range needs {
		c.holder[n] = id
	}
}

// release frees what an allocation holds, or withdraws its claim, and grants what
// can be granted then. It must not be called with an allocation's lock held.
func (c *claims) release(id string) {
	for _, grant := range c.drop(id) {
		grant()
	}
}

func (c *claims) drop(id string) (grants []func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.held[id] {
		if c.holder[n] == id {
			delete(c.holder, n)
		}
	}
	delete(c.held, id)
	c.waiting = slices.DeleteFunc(c.waiting, func(w claim) bool {
		if w.id == id {
			return true
		}
		if !c.free(w.needs) {
			return false
		}
		c.take(w.id, w.needs)
		grants = append(grants, w.grant)
		return true
	})
	return grants
}
