// Package ownerseries derives the metrics of virtual clusters from the state: what namespaces own of the devices, what of it they use,
// lend and lack, and what they use besides. It is done when somebody requests metrics, which walks all nodes and allocations, and not
// again while nothing has changed.
package ownerseries

import (
	"cmp"
	"slices"

	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// kindFamilies are of each kind of devices of an owner, in the order of counts.
var kindFamilies = [...]*telemetry.Family{
	telemetry.Named("nomad.virtual_cluster.gpus_owned"), telemetry.Named("nomad.virtual_cluster.gpus_guaranteed"),
	telemetry.Named("nomad.virtual_cluster.gpus_opportunistic"), telemetry.Named("nomad.virtual_cluster.gpus_lent"),
	telemetry.Named("nomad.virtual_cluster.gpus_doomed"),
}

// ownerFamilies are of each owner.
var ownerFamilies = [...]*telemetry.Family{
	telemetry.Named("nomad.virtual_cluster.points_balance"), telemetry.Named("nomad.virtual_cluster.entitled_missing"),
}

// Series are the metrics of virtual clusters. The zero value is ready for use, by one goroutine at a time.
type Series struct {
	at     [3]uint64 // the indexes as of which the following was derived: of claims, jobs and requests
	kinds  [len(kindFamilies)][]telemetry.Value
	owners [len(ownerFamilies)][]telemetry.Value
}

// Add adds the series to a batch, as a snapshot of the state has them.
func (s *Series) Add(b *telemetry.Batch, snap *state.Snapshot) {
	if at := [...]uint64{snap.ClaimsIndex(nil), snap.TableIndex(state.TableJobs), snap.TableIndex(state.TableRequests)}; at != s.at {
		s.at = at
		s.derive(snap)
	}
	fit := b.Fit(telemetry.OfNamespaces, len(s.owners[0]), len(ownerFamilies))
	for i, f := range ownerFamilies {
		b.Share(f, s.owners[i][:fit])
	}
	fit = b.Fit(telemetry.OfNamespaces, len(s.kinds[0]), len(kindFamilies))
	for i, f := range kindFamilies {
		b.Share(f, s.kinds[i][:fit])
	}
}

// counts are numbers of devices of one kind.
type counts struct{ owned, guaranteed, opportunistic, lent, doomed int }

func (s *Series) derive(snap *state.Snapshot) {
	*s = Series{at: s.at}
	byOwner := map[string]map[scheduler.OwnerKind]counts{}
	for name, view := range scheduler.ClaimViews(snap.World(), "", false) { // order does not matter: each by itself
		byOwner[name] = kindsOf(name, view)
	}
	for k, n := range scheduler.OpportunisticDevices(snap.World()) { // as above
		if of := byOwner[k.Owner]; of != nil {
			c := of[k]
			c.opportunistic = n
			of[k] = c
		}
	}
	for vc := range snap.VirtualClusters(nil).List("", false) {
		labels := telemetry.Labels("namespace", vc.Name)
		for i, n := range [...]int64{vc.Points, int64(entitled(snap, vc.Name))} {
			s.owners[i] = append(s.owners[i], telemetry.Value{Labels: labels, Value: float64(n)})
		}
		s.addKinds(byOwner[vc.Name])
	}
}

// kindsOf sums up the cells of an owner by kind.
func kindsOf(owner string, view *scheduler.ClaimView) map[scheduler.OwnerKind]counts {
	out := map[scheduler.OwnerKind]counts{}
	for _, line := range view.Cells {
		k := scheduler.OwnerKind{Owner: owner, NodePool: line.NodePool, Kind: line.Kind}
		c := out[k]
		c.owned += line.GPUs
		c.guaranteed += line.GPUsUsed
		c.lent += line.Lent
		if line.Given > 0 {
			c.doomed += line.Doomed * (line.GPUs / line.Given)
		}
		out[k] = c
	}
	return out
}

// addKinds adds a value of each family for each kind.
func (s *Series) addKinds(byKind map[scheduler.OwnerKind]counts) {
	kinds := make([]scheduler.OwnerKind, 0, len(byKind))
	for k := range byKind { // order does not matter: sorted below
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b scheduler.OwnerKind) int {
		return cmp.Or(cmp.Compare(a.NodePool, b.NodePool), cmp.Compare(a.Kind, b.Kind))
	})
	for _, k := range kinds {
		labels, c := telemetry.Labels("namespace", k.Owner, "node_pool", k.NodePool, "kind", k.Kind), byKind[k]
		for i, n := range [...]int{c.owned, c.guaranteed, c.opportunistic, c.lent, c.doomed} {
			s.kinds[i] = append(s.kinds[i], telemetry.Value{Labels: labels, Value: float64(n)})
		}
	}
}

// entitled returns how many instances of a namespace's jobs wait that what it owns would hold, each request taken alone.
func entitled(snap *state.Snapshot, owner string) (n int) {
	var of *structs.Job // neighbours are of one job
	for request := range snap.Requests().Waiting(nil, owner) {
		if of == nil || of.ID != request.JobID {
			if of = snap.Job(nil, owner, request.JobID); of == nil {
				continue
			}
		}
		if w := snap.World(); scheduler.EntitledKind(w, of, request.Group) == structs.ClaimRankCells { // others are entitled by slots of a project
			n += scheduler.Entitled(w, of, request.Group, request.Missing)
		}
	}
	return n
}
