package lend

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/domain"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// byDevices returns the nodes of a reservation on which one more instance of its workflow finds the devices that it requests once borrowers leave, the ones on which
// fewest do first.
func byDevices(s *search.Search, c *structs.WorkflowClaim) (nodes []Node) {
	if s.Request.Reserved == 0 {
		return nil
	}
	lent := lentTo(s.Edit, c)
	for i := range c.Parts {
		n, known := world.StateOf(s.Edit, c.Parts[i].NodeID)
		if !known || n.Node == nil || n.Capacity == nil {
			continue
		}
		part, has := n.Part(c.Key())
		if !has || part.Total.Less(part.Used).Lacks(s.Request.NeedsOn(n)) != "" || s.Takes(n) || !s.Takes(unlent(n, c)) {
			continue
		}
		if leave := fewestByCell(s, n, c, lent); len(leave) > 0 {
			nodes = append(nodes, Node{n.ID, leave})
		}
	}
	slices.SortStableFunc(nodes, fewestLeave)
	return nodes
}

// unlent is a node without those who borrow there from a workflow.
func unlent(n *world.NodeState, c *structs.WorkflowClaim) *world.NodeState {
	trial := world.TrialOf(n)
	for _, u := range n.Usages {
		if u.Owner.Terms.BorrowsFrom() == c.Key() {
			trial.Give(u)
		}
	}
	return trial
}

// fewestByCell returns those borrowers that leave a node for an instance: of one cell of a level that it requires if there fewer have to than of all.
func fewestByCell(s *search.Search, n *world.NodeState, c *structs.WorkflowClaim, lent []int64) map[string]bool {
	few := leaving(s.Edit, n, c, lent, anyBorrower, s.Takes)
	seen := map[string]bool{} // looked up only
	for i := range s.Request.Devices {
		find := &s.Request.Devices[i].Find
		if !find.Required || seen[find.Level] {
			continue
		}
		seen[find.Level] = true
		for _, d := range domain.CellsOf(n, find.Level) {
			leave := leaving(s.Edit, n, c, lent, func(u *world.Usage) bool {
				return slices.ContainsFunc(u.Devices, func(of world.DeviceUsage) bool { return d.Devices[of.ID] })
			}, s.Takes)
			if leave != nil && (few == nil || len(leave) < len(few)) {
				few = leave
			}
		}
	}
	return few
}
