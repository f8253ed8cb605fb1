package view

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// Limits of one page of the topology: of numbers only, and with every device. A node
// of 8 GPUs takes about 300 bytes of the first and 5 KiB of the second.
const (
	maxTopologyNodes   = 1000 // nodes of an answer; the rest is on the next pages
	maxTopologyDetails = 128  // nodes of an answer with their devices
)

func (e *Endpoint) topology(ctx context.Context, args *structs.TopologyRequest) (*structs.TopologyReply, error) {
	if len(args.NodeID) > 64 {
		return nil, rpc.CheckUUID("node", args.NodeID)
	}
	most := maxTopologyNodes
	if args.Details {
		most = maxTopologyDetails
	}
	if args.PerPage == 0 || args.PerPage > most {
		args.PerPage = most
	}
	reply := &structs.TopologyReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		var err error
		if args.NodeID != "" {
			var index uint64
			reply.Topology, index = nodeTopology(ws, snap, args.NodeID)
			return index, nil
		}
		owners, index := ownersIn(ws, snap)
		reply.Topology, err = topologyPage(ws, snap, args, &reply.QueryMeta, owners)
		return max(index, snap.TableIndex(state.TableNodes), snap.TableIndex(state.TableAllocs),
			snap.TableIndex(state.TableConfig), snap.TableIndex(state.TableReservations), snap.TableIndex(state.TableWorkflows)), err
	})
}

// nodeTopology is one node with details; nil if there is none.
func nodeTopology(ws *state.WatchSet, snap *state.Snapshot, id string) (*structs.Topology, uint64) {
	node := snap.Node(ws, id)
	config := snap.SchedulerConfig(ws)
	if node == nil {
		return nil, snap.TableIndex(state.TableNodes)
	}
	allocs := snap.AllocsByNode(ws, id)
	reserved := reservedNodes(ws, snap)
	owners, index := ownersIn(ws, snap)
	index = max(index, node.ModifyIndex, config.ModifyIndex, snap.TableIndex(state.TableReservations), snap.TableIndex(state.TableWorkflows))
	if len(allocs) > 0 {
		index = max(index, rpc.AllocsIndex(snap, allocs))
	}
	sum := newTopologySum(config.SiteLevels())
	view := viewNode(node, allocs)
	view.Reservation, view.Workflows = reserved[id], scheduler.ReservedOn(snap.World(), id)
	above := owners.mark(view)
	sum.add(view, sum.site(node), above)
	owners.stated(sum.out.Owners)
	return sum.finish(true), index
}

// reservedNodes are the reservations by node ID: few, also in a large cluster. What workflows reserve is watched with them.
func reservedNodes(ws *state.WatchSet, snap *state.Snapshot) map[string]*structs.Reservation {
	out := map[string]*structs.Reservation{}
	for r := range snap.Reservations(ws) {
		out[r.NodeID] = r
	}
	_ = snap.Workflows(ws).Alive()
	return out
}

func topologyPage(
	ws *state.WatchSet, snap *state.Snapshot, args *structs.TopologyRequest, meta *structs.QueryMeta, owners owners,
) (*structs.Topology, error) {
	config := snap.SchedulerConfig(ws)
	sum := newTopologySum(config.SiteLevels())
	sum.out.Owners = owners.all()
	metas, reserved := map[string]map[string]string{}, reservedNodes(ws, snap)
	above := map[string][]sitePart{}
	nodes, err := rpc.Page(&args.QueryOptions, meta, func(yield func(*structs.TopologyNode) bool) {
		for n := range snap.Nodes(ws, args.Prefix, args.Reverse) {
			if before(&args.QueryOptions, n.ID) {
				continue // page would leave it out; this saves looking at what it contains
			}
			var allocs []*structs.Allocation
			if n.NodeResources != nil && len(n.NodeResources.Devices) > 0 {
				allocs = snap.AllocsByNode(ws, n.ID)
			}
			metas[n.ID] = n.Meta
			view := viewNode(n, allocs)
			view.Reservation, view.Workflows = reserved[n.ID], scheduler.ReservedOn(snap.World(), n.ID)
			above[n.ID] = owners.mark(view)
			if !yield(view) {
				return
			}
		}
	}, func(n *structs.TopologyNode) string { return n.ID })
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		sum.add(n, sum.site(&structs.Node{Meta: metas[n.ID]}), above[n.ID])
	}
	return sum.finish(args.Details), nil
}

// before reports whether an item stands before the requested page.
func before(opts *structs.QueryOptions, token string) bool {
	switch {
	case opts.NextToken == "":
		return false
	case opts.Reverse:
		return token > opts.NextToken
	}
	return token < opts.NextToken
}

// topologySum gathers nodes into the cells above them.
type topologySum struct {
	levels  []structs.TopologyLevel
	sites   map[string]*structs.TopologySite
	heights map[string]int
	owners  siteOwners
	out     *structs.Topology
}

func newTopologySum(levels []structs.TopologyLevel) *topologySum {
	return &topologySum{
		levels: levels, sites: map[string]*structs.TopologySite{}, heights: map[string]int{structs.LevelNode: 0}, owners: siteOwners{},
		out: &structs.Topology{Sites: []*structs.TopologySite{}, Nodes: []*structs.TopologyNode{}, FreeCells: []structs.FreeCells{}},
	}
}

// site returns the cell right above a node; nil if there is none. A level that the
// node's meta does not name is left out.
func (s *topologySum) site(n *structs.Node) *structs.TopologySite {
	var at *structs.TopologySite
	for _, level := range slices.Backward(s.levels) {
		name := n.Meta[level.Meta]
		if name == "" {
			continue
		}
		id, parent := level.Name+"="+url.PathEscape(name), ""
		if at != nil {
			id, parent = at.ID+"/"+id, at.ID
		}
		if s.sites[id] == nil {
			s.sites[id] = &structs.TopologySite{ID: id, Level: level.Name, Name: name, Parent: parent}
			s.out.Sites = append(s.out.Sites, s.sites[id])
		}
		at = s.sites[id]
	}
	return at
}

// add adds a node, with the cell right above it, and its part of bound cells above it.
func (s *topologySum) add(n *structs.TopologyNode, site *structs.TopologySite, above []sitePart) {
	s.out.Nodes = append(s.out.Nodes, n)
	s.out.Add(n.Counts())
	heightsOf(n.Cells, s.heights)
	for _, f := range n.FreeCells {
		s.out.AddFree(f)
	}
	for _, o := range n.Owners {
		s.out.AddOwner(o)
	}
	if n.FreeCells == nil {
		n.FreeCells = []structs.FreeCells{}
	}
	if site != nil {
		n.Site = site.ID
	}
	for ; site != nil; site = s.sites[site.Parent] {
		site.Nodes++
		site.Add(n.Counts())
		s.owners.add(site, above)
	}
}

func (s *topologySum) finish(details bool) *structs.Topology {
	s.out.Levels = byHeight(s.heights)
	// A level of the site's that nodes report within themselves too stands where they report it.
	for _, l := range s.levels {
		if !slices.Contains(s.out.Levels, l.Name) {
			s.out.Levels = append(s.out.Levels, l.Name)
		}
	}
	s.owners.mark(s.out.Sites)
	sortFree(s.out.FreeCells, s.out.Levels)
	slices.SortFunc(s.out.Sites, func(a, b *structs.TopologySite) int { return strings.Compare(a.ID, b.ID) })
	if !details {
		for _, n := range s.out.Nodes {
			n.Cells, n.Links = nil, nil
		}
	}
	return s.out
}
