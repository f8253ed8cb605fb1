package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/lend"
	"github.com/nomadish/nomadish/structs"
)

// lendersNamed bounds the workflows that an explanation names.
const lendersNamed = 5

// lenders states why the workflows that name the job in a lend block lend no more to the instances that are left. Those whose room idles are stated with
// the nodes already.
func (x *explainer) lenders(out *structs.GroupExplanation, left int) {
	keys := slices.DeleteFunc(lend.Named(x.after, x.in.Job), func(key string) bool {
		return slices.ContainsFunc(out.Reasons, func(r structs.NodeReason) bool {
			return r.Kind == structs.ReasonReserved && strings.Contains(r.Text, reservedBy+key+",")
		})
	})
	g := x.in.Job.LookupTaskGroup(out.Group)
	for _, key := range keys[:min(len(keys), lendersNamed)] {
		nothing := "nothing is lent by workflow "
		if x.borrowsFrom(key) {
			nothing = "nothing more is lent by workflow "
		}
		out.Waits = append(out.Waits, structs.Wait{Kind: structs.ReasonReserved, Instances: left, Text: nothing + key + ", " + lend.Refusal(&x.in.Input, x.after, g, key)})
	}
	if more := len(keys) - lendersNamed; more > 0 {
		out.Waits = append(out.Waits, structs.Wait{Kind: structs.ReasonReserved, Instances: left, Text: fmt.Sprintf("nothing is lent by %d more workflows", more)})
	}
}

// borrowsFrom reports whether instances of the job borrow from the workflow of a key.
func (x *explainer) borrowsFrom(key string) bool {
	return slices.ContainsFunc(x.allocs, func(a *structs.Allocation) bool {
		return !a.Terminal() && a.AllocatedResources != nil && a.AllocatedResources.Shared.Terms != nil && a.AllocatedResources.Shared.Terms.BorrowsFrom() == key
	})
}
