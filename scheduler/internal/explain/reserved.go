package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// reservedNamed bounds the requests that an explanation names as those for whom room is reserved.
const reservedNamed = 5

// reserved states for whom room is reserved on nodes that lack room for the group: they start there first, also those that rank lower.
func (x *explainer) reserved(out *structs.GroupExplanation, sv *survey, left int) {
	var list []*world.Reservation
	for i := range sv.short {
		n := sv.short[i].n
		if h := n.Reservation; h != nil && !h.Free(&sv.find.Request.By) && !x.ownReservation(h) && sv.holds(n) {
			list = append(list, h)
		}
	}
	if len(list) == 0 {
		return
	}
	slices.SortFunc(list, func(a, b *world.Reservation) int {
		return cmp.Or(cmp.Compare(a.Due, b.Due), strings.Compare(a.NodeID, b.NodeID))
	})
	var names []string
	for _, h := range list[:min(len(list), reservedNamed)] {
		names = append(names, fmt.Sprintf("group %q of job %q of namespace %q (due %s)", h.Group, h.Job, h.Namespace, clockTime(h.Due)))
	}
	if more := len(list) - reservedNamed; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	nodes := "1 node, which it may use only after"
	if len(list) > 1 {
		nodes = fmt.Sprintf("%d nodes, which it may use only after", len(list))
	}
	out.Waits = append(out.Waits, structs.Wait{
		Kind: structs.ReasonReserved, Instances: left, Text: "room is reserved on " + nodes + " those for whom it is: " + strings.Join(names, ", "),
	})
}

func (x *explainer) ownReservation(h *world.Reservation) bool {
	return h.Namespace == x.in.Job.Namespace && h.Job == x.in.Job.ID
}
