package feasible

import (
	"fmt"

	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// need is what an instance needs at least of its node, as far as that can be counted.
type need [len(needNouns)]int64

// needNouns are what is counted.
var needNouns = [...]string{"devices", "MHz", "whole cores", "MiB of memory", "MiB of disk"}

// needOf returns what an instance of a group needs at least. Shares of devices are left out, as several may be of one, and so are the MHz of whole cores.
func needOf(g *structs.TaskGroup) (out need) {
	r := NeedsOf(g)
	out = need{0, r.Amount.CPU, int64(r.Cores), r.Amount.MemoryMB, r.Amount.DiskMB}
	for _, t := range g.Tasks {
		for _, d := range DeviceRequests(t) {
			if d.Share == world.WholeDevice {
				out[0] += int64(d.Count)
			}
		}
	}
	return out
}

// has is what a node has when it is empty.
func has(c *world.Capacity) need {
	return need{c.WellDevices(), c.Amount.CPU, int64(len(c.Cores)), c.Amount.MemoryMB, c.Amount.DiskMB}
}

// times returns how many instances fit into what there is, at most, and no more than most.
func (n need) times(has need, most int) int {
	for i := range n {
		if n[i] > 0 {
			most = min(most, int(max(0, has[i])/n[i])) // as many as most
		}
	}
	return most
}

// TooLarge states why no instance of a group can start on the nodes that are ready, whatever ends there: none may run it, none is large enough, or all of them are not
// for those of its gang that start together. "": it may be able to.
func TooLarge(w *world.World, job *structs.Job, group *structs.TaskGroup) string {
	f, needs, wanted := NewFeasibility(job, group, NewMatcher()), needOf(group), 1
	if gang := GangsOf(job)[group.Name]; gang != nil {
		for _, g := range gang.Groups {
			if g.Group.Name == group.Name {
				wanted = max(1, g.Min)
			}
		}
	}
	may, room := 0, 0
	var most need // of one node
	for _, n := range w.States {
		if n.Node == nil || n.Capacity == nil || !n.Node.Ready() || !f.Verdict(n.Node).OK() {
			continue
		}
		may++
		node := has(n.Capacity)
		if room += needs.times(node, wanted-room); room >= wanted {
			return ""
		}
		for i := range most {
			most[i] = max(most[i], node[i])
		}
	}
	switch {
	case may == 0:
		return "no node that is ready may run it"
	case room > 0:
		return fmt.Sprintf("larger than the cluster: %d instances start together, and all nodes that are ready and may run them have room for %d, when they are empty", wanted, room)
	}
	for i, noun := range needNouns {
		if needs[i] > most[i] {
			return fmt.Sprintf("larger than any node: an instance needs %d %s, and no node that is ready and may run it has more than %d", needs[i], noun, most[i])
		}
	}
	return "larger than any node: no node that is ready and may run it has room for an instance, even when it is empty"
}
