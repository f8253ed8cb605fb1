package claim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Why instances use no claim by what they request, whatever is free of what their namespace owns.

// WantsDevices reports whether some requests are for anything that may be owned: those without devices are not, and need not wait for it.
func WantsDevices(requests []*search.Request) bool {
	return slices.ContainsFunc(requests, func(a *search.Request) bool { return len(a.Devices) > 0 })
}

// Unusable returns in words why instances of some requests of a job can use nothing of what its namespace owns.
func Unusable(e *world.Edit, job *structs.Job, requests []*search.Request) (texts []string) {
	if job.Class == structs.ClassOpportunistic || job.PerNode() {
		return nil
	}
	for _, a := range requests {
		text := feasible.NotTogether(a.Devices)
		switch want := Devices(job, a); {
		case text != "":
			text = "claim: " + text
		case want != nil:
			text = beyond(e, job, a, want)
		}
		if text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if WantsDevices(requests) && slices.ContainsFunc(requests, func(a *search.Request) bool { return len(a.Devices) == 0 }) {
		texts = append(texts, "claim: a group of its gang requests no GPUs, and a gang uses a claim as a whole")
	}
	return texts
}

// BeyondShares returns in words which groups of a job can use nothing of what its namespace owns, as each of their instances requests more
// processor or memory than belongs to its devices on any node.
func BeyondShares(w *world.World, in *search.Input) (texts []string) {
	e := w.Edit()
	for _, g := range in.Job.TaskGroups {
		a := search.NewRequest(in, g)
		if want := Devices(in.Job, a); want != nil && feasible.NotTogether(a.Devices) == "" {
			if text := beyond(e, in.Job, a, want); text != "" {
				texts = append(texts, fmt.Sprintf("group %q: %s", g.Name, strings.TrimPrefix(text, "beyond the share: ")))
			}
		}
	}
	return texts
}

// beyond returns in words by how much an instance is beyond the share of its devices on every node whose cells its namespace may own; "": it
// is not.
func beyond(e *world.Edit, job *structs.Job, a *search.Request, want *feasible.DeviceRequest) (text string) {
	pool := cmp.Or(job.NodePool, structs.DefaultNodePool)
	owned := world.Base(e).Quotas(job.Namespace)
	has := func(n *world.NodeState, allowed func(key world.ChainKey) bool) bool {
		return n.Node != nil && slices.ContainsFunc(n.Capacity.Trees, func(t *world.DeviceTree) bool {
			key, ok := world.ChainOf(n.Node, t)
			return ok && allowed(key)
		})
	}
	ofKind := func(key world.ChainKey) bool { return matches(pool, want, key) }
	ofOwned := func(key world.ChainKey) bool {
		return ofKind(key) && slices.ContainsFunc(owned, func(q world.Quota) bool { return q.Chain == key })
	}
	most := int64(-1) // the share of the node with the largest
	for _, set := range world.Families(world.Base(e)).All {
		if !has(set.Any(), ofKind) { // the nodes of a family have the same devices, if not in the same trees
			continue
		}
		for n := range set.All {
			n = world.Current(e, n)
			if !has(n, ofOwned) {
				continue
			}
			amount := amountOn(a, n)
			if !BeyondShare(e, n, amount, want.Count) {
				return ""
			}
			claimable, all := world.Base(e).Claimable(n)
			if all == 0 || claimable.CPU*int64(want.Count)/int64(all) <= most {
				continue
			}
			cpu, memory := claimable.CPU*int64(want.Count)/int64(all), claimable.MemoryMB*int64(want.Count)/int64(all)
			if most, text = cpu, fmt.Sprintf("beyond the share: it requests %d MHz of %d that belong to its GPUs", amount.CPU, cpu); amount.CPU <= cpu {
				text = fmt.Sprintf("beyond the share: it requests %d MiB of memory of %d that belong to its GPUs", amount.MemoryMB, memory)
			}
		}
	}
	return text
}

// amountOn is what an instance takes of a node: the MHz of cores differ by node.
func amountOn(a *search.Request, n *world.NodeState) world.Vector {
	amount := a.Amount
	amount.CPU += a.Need[world.DimCores] * n.Capacity.MHzPerCore
	return amount
}
