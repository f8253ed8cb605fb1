package structs

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// CheckOwned returns an error if a virtual cluster would have fewer cells of a kind, at any time from one in Unix nanoseconds on, than are
// pinned, or than it has shifted and sold: of CodeBadRequest if its own windows say so, else of CodeConflict, as shifts and
// exchanges end.
func (v *VirtualCluster) CheckOwned(from int64) error {
	for _, t := range append([]int64{from}, v.Edges(from)...) {
		stated := v.sumsAt(t, false)
		for i := range stated {
			c := &stated[i]
			if c.Count < len(c.Pinned) {
				return Errorf(CodeBadRequest, "virtual cluster %q: window at %s: it has %d cells of level %s, but %s pinned: %s", clip(v.Name), timeText(t), c.Count,
					c.Level, isAre(len(c.Pinned)), c.pinsText()).WithHint("give the window as many cells as are pinned, or leave the pin out")
			}
		}
		sums := v.sumsAt(t, true) // begins with the same kinds
		for i := range sums {
			if c := &sums[i]; c.Count < len(c.Pinned) {
				stated := append(stated, CellQuota{})[min(i, len(stated))].Count
				return v.overdrawn(c, stated, t)
			}
		}
	}
	return nil
}

// overdrawn returns the error of shifts and sales that take more than is stated, or what is pinned.
func (v *VirtualCluster) overdrawn(c *CellQuota, stated int, t int64) error {
	gone, until, why := 0, int64(0), map[string]bool{}
	for i := range v.Changes {
		if x := &v.Changes[i]; x.in(t) && x.Cells.Count < 0 && x.Cells.SameCells(c) {
			gone, until = gone-x.Cells.Count, max(until, x.Until)
			why[x.Why] = true
		}
	}
	verb, hint := "shifted to another time", "wait until then, or shift them back first"
	switch {
	case why[CellChangeSold] && why[CellChangeShift]:
		verb = "shifted to another time or sold"
	case why[CellChangeSold]:
		verb, hint = "sold", "wait until they come back"
	}
	pins := ""
	if len(c.Pinned) > 0 {
		pins, hint = fmt.Sprintf(", and %s pinned: %s", isAre(len(c.Pinned)), c.pinsText()), hint+", or pin none of these cells"
	}
	return Errorf(CodeConflict, "virtual cluster %q: it is to have %d cells of level %s at %s, but %s %s until %s%s", clip(v.Name), stated, c.Level, timeText(t),
		isAre(gone), verb, timeText(until), pins).WithHint("%s", hint)
}

// Growth returns of which cells a virtual cluster has more than another, nil has none, at any time from one in Unix nanoseconds on.
func (v *VirtualCluster) Growth(over *VirtualCluster, from int64) (more []CellQuota) {
	if over == nil {
		over = &VirtualCluster{}
	}
	for _, t := range append(append([]int64{from}, v.Edges(from)...), over.Edges(from)...) {
		was := over.CellsAt(t)
		for _, c := range v.CellsAt(t) {
			for i := range was {
				if was[i].SameCells(&c) {
					c.Count -= was[i].Count
				}
			}
			if c.Count > 0 && !slices.ContainsFunc(more, func(o CellQuota) bool { return o.SameCells(&c) }) {
				more = append(more, c)
			}
		}
	}
	return more
}

// Waiting returns a virtual cluster as it is when its pending edit is admitted.
func (v *VirtualCluster) Waiting() *VirtualCluster {
	now := v.Copy()
	now.OverLimit, now.Cells, now.Windows, now.Pending = v.Pending.OverLimit, v.Pending.Cells, v.Pending.Windows, nil
	return now
}

// SameLevel reports whether two quotas are of cells of one chain and level, of whatever size.
func (c *CellQuota) SameLevel(o *CellQuota) bool {
	return c.NodePool == o.NodePool && c.Kind == o.Kind && c.Chain == o.Chain && c.Level == o.Level
}

// isAre returns a number with its verb.
func isAre(n int) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprint(n, " are")
}

func (c *CellQuota) pinsText() string {
	names := make([]string, len(c.Pinned))
	for i, p := range c.Pinned {
		names[i] = p.Name
	}
	return strings.Join(names, ", ")
}

func timeText(t int64) string { return time.Unix(0, t).UTC().Format(time.RFC3339) }
