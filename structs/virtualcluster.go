package structs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What a virtual cluster may be at most.
const (
	// MaxVirtualClusters bounds the virtual clusters of a region.
	MaxVirtualClusters = 1_000
	// MaxCellQuotas bounds the blocks of cells of a virtual cluster, and of each of its windows.
	MaxCellQuotas = 64
	// MaxCellWindows bounds the windows of a virtual cluster.
	MaxCellWindows = 64
	// MaxCellCount bounds the cells of one block.
	MaxCellCount = 1_000_000
	// MaxCellPins bounds the pins of one block.
	MaxCellPins = 1_000
	// MaxPoints bounds the points of a virtual cluster.
	MaxPoints = 1_000_000_000_000
)

// What happens to instances beyond what their namespace owns (semantics part 2, "Upper limit").
const (
	OverLimitOpportunistic = "opportunistic" // they run on what is idle, and may be reclaimed at any time
	OverLimitWait          = "wait"          // they wait until what is owned suffices
	OverLimitConfirm       = "ask"           // the job is refused until it is registered with opportunistic=true
)

// VirtualCluster is what a namespace owns of the devices of a region: cells, whichever they are (semantics part 2).
type VirtualCluster struct {
	Name      string `hcl:"name,label"` // its namespace
	OverLimit string `hcl:"over_limit"` // what becomes of instances beyond what it owns: `opportunistic`, they run on what is idle and may be reclaimed at any time; `wait`, they wait; `over_limit = "ask"`, the job is refused until it is registered with `-opportunistic`; default: opportunistic
	// Points are what it may bid in exchanges. Stated at creation only.
	Points int64 `hcl:"points"`
	// Cells are what it owns whenever no window says otherwise.
	Cells []*CellQuota `hcl:"cells,block"`
	// Windows replace cells of the same kind, level and size for a time, in the order of their begin.
	Windows []*CellWindow `hcl:"window,block"`
	// Claims are what it owns now, in the order of admission. The state derives them; a caller's are ignored.
	Claims []CellClaim `json:",omitempty" codec:",omitempty"`
	// Changes are cells more, or less, for a time: shifts and exchanges. A caller's are ignored.
	Changes []CellChange `json:",omitempty" codec:",omitempty"`
	// Pending is an edit that waits until it can be admitted; nil: none. A caller's is ignored.
	Pending *PendingCells `json:",omitempty" codec:",omitempty"`

	CreateIndex uint64
	ModifyIndex uint64
}

// CellQuota is a number of cells of one kind.
type CellQuota struct {
	// Kind is vendor/type/model of the devices, with the tree of a node after it where one model has several
	// ("nvidia/gpu/H100/2x2x2": children of each vertex, from the node down). It may be empty where the pool has one kind.
	Kind string `hcl:"kind"`
	// NodePool is the pool of the nodes; empty: the default pool.
	NodePool string `hcl:"node_pool"`
	// Level names the cells' level: one within nodes, the node, or one of the site's.
	Level string `hcl:"level"`
	// Size is how many nodes a cell of a site's level has; 0 within nodes.
	Size int `hcl:"size"`
	// Count is how many cells.
	Count int `hcl:"count"`
	// Pin names cells that shall be among them, at most Count: "node-17", "node-17/socket-0", "rack:r1".
	Pin []string `hcl:"pin"`
	// Chain is the key of the chain that Kind stands for, and Pinned are the cells that Pin names. The state finds them; a
	// caller's are ignored.
	Chain  string    `json:",omitempty" codec:",omitempty"`
	Pinned []CellPin `json:",omitempty" codec:",omitempty"`
}

// CellWindow is what a virtual cluster owns for a time in place of its cells of the same kind, level and size.
type CellWindow struct {
	From  time.Time    `hcl:"from"`        // when it begins, as in "2026-12-01T00:00:00Z"
	To    time.Time    `hcl:"to"`          // when it ends
	Cells []*CellQuota `hcl:"cells,block"` // what the virtual cluster has in the place of its cells meanwhile
}

// CellClaim is cells that a namespace was given at one time, of a chain that was found for their kind.
type CellClaim struct {
	NodePool            string
	Vendor, Type, Model string
	// Chain is the key of the tree that the chain's nodes have.
	Chain string
	// Tree is how the tree is written in kinds ("2x2x2").
	Tree  string
	Level string
	Size  int `json:",omitempty" codec:",omitempty"`
	Count int
	// Order is that of admission: lowest first.
	Order uint64
	// Pins are cells among them that are bound at once.
	Pins []CellPin `json:",omitempty" codec:",omitempty"`
	// Waits states that they are due and not given yet: what others have bound forbids it. They are given in the order of Order.
	Waits bool `json:",omitempty" codec:",omitempty"`
}

// CellPin is a cell that is pinned to its owner.
type CellPin struct {
	Name string // as it was written
	// NodeID and Index name a cell within a node by its number among those of its level; Site names one above nodes by its key.
	NodeID string `json:",omitempty" codec:",omitempty"`
	Index  int    `json:",omitempty" codec:",omitempty"`
	Site   string `json:",omitempty" codec:",omitempty"`
}

// PendingCells is an edit that was accepted with WhenFree.
type PendingCells struct {
	OverLimit string
	Cells     []*CellQuota
	Windows   []*CellWindow
	Index     uint64 // at which it was accepted; edits are tried in this order
	// Reason is why it could not be admitted when it was last tried.
	Reason string
}

// Kind returns the kind of the claim's cells as it is written in files.
func (c *CellClaim) Kind() string {
	return c.Vendor + "/" + c.Type + "/" + c.Model
}

// SameCells reports whether two claims are on cells of the same chain, level and size.
func (c *CellClaim) SameCells(o *CellClaim) bool {
	return c.NodePool == o.NodePool && c.Vendor == o.Vendor && c.Type == o.Type && c.Model == o.Model && c.Chain == o.Chain &&
		c.Level == o.Level && c.Size == o.Size
}

// Copy returns a copy that shares nothing with v.
func (v *VirtualCluster) Copy() *VirtualCluster {
	if v == nil {
		return nil
	}
	out := *v
	out.Cells, out.Windows = copyCells(v.Cells), copyWindows(v.Windows)
	out.Claims = slices.Clone(v.Claims)
	for i := range out.Claims {
		out.Claims[i].Pins = slices.Clone(out.Claims[i].Pins)
	}
	out.Changes = slices.Clone(v.Changes)
	if v.Pending != nil {
		p := *v.Pending
		p.Cells, p.Windows = copyCells(p.Cells), copyWindows(p.Windows)
		out.Pending = &p
	}
	return &out
}

func copyCells(list []*CellQuota) []*CellQuota {
	out := slices.Clone(list)
	for i, c := range out {
		if c != nil {
			own := *c
			own.Pin, own.Pinned = slices.Clone(c.Pin), slices.Clone(c.Pinned)
			out[i] = &own
		}
	}
	return out
}

func copyWindows(list []*CellWindow) []*CellWindow {
	out := slices.Clone(list)
	for i, w := range out {
		if w != nil {
			own := *w
			own.Cells = copyCells(w.Cells)
			out[i] = &own
		}
	}
	return out
}

// Canonicalize fills in what may be left out.
func (v *VirtualCluster) Canonicalize() {
	if v == nil {
		return
	}
	v.OverLimit = cmp.Or(v.OverLimit, OverLimitOpportunistic)
	fill := func(list []*CellQuota) {
		for _, c := range list {
			if c != nil {
				c.NodePool = cmp.Or(c.NodePool, DefaultNodePool)
			}
		}
	}
	fill(v.Cells)
	for _, w := range v.Windows {
		if w != nil {
			w.From, w.To = w.From.UTC(), w.To.UTC()
			fill(w.Cells)
		}
	}
	slices.SortStableFunc(v.Windows, func(a, b *CellWindow) int {
		if a == nil || b == nil {
			return 0
		}
		return a.From.Compare(b.From)
	})
}

// Validate returns an error of CodeBadRequest if there can be no such virtual cluster, whatever the cluster has.
func (v *VirtualCluster) Validate() error {
	if v == nil || v.Name == "" {
		return Errorf(CodeBadRequest, "missing name of the virtual cluster").WithHint("it is that of its namespace")
	}
	bad := func(format string, args ...any) *Error {
		return Errorf(CodeBadRequest, "virtual cluster %q: "+format, append([]any{clip(v.Name)}, args...)...)
	}
	switch v.OverLimit {
	case "", OverLimitOpportunistic, OverLimitWait, OverLimitConfirm:
	default:
		return bad("over_limit: must be %s, %s or %s, not %q", OverLimitOpportunistic, OverLimitWait, OverLimitConfirm, clip(v.OverLimit))
	}
	switch {
	case !ValidNamespace(v.Name):
		return bad("invalid name. A name has 1 to 128 letters, digits or dashes")
	case v.Points < 0 || v.Points > MaxPoints:
		return bad("points: must be 0 to %d, not %d", int64(MaxPoints), v.Points)
	case len(v.Windows) > MaxCellWindows:
		return bad("%d windows: at most %d are allowed", len(v.Windows), MaxCellWindows)
	}
	if err := validateCells(v.Cells, bad, "cells"); err != nil {
		return err
	}
	return validateWindows(v.Windows, bad)
}

// ValidateCounts returns an error of CodeBadRequest if a block of cells has no count. In a window a count of 0 states that there are none
// for a time.
func (v *VirtualCluster) ValidateCounts() error {
	for i, c := range v.Cells {
		if c.Count == 0 {
			return Errorf(CodeBadRequest, "virtual cluster %q: cells %d: count is missing", clip(v.Name), i+1).
				WithHint("a virtual cluster that is to own nothing has no blocks of cells")
		}
	}
	return nil
}

func validateWindows(list []*CellWindow, bad func(format string, args ...any) *Error) error {
	for i, w := range list {
		at := "window " + strconv.Itoa(i+1)
		switch {
		case w == nil || len(w.Cells) == 0:
			return bad("%s: it has no cells", at)
		case w.From.IsZero() || w.To.IsZero():
			return bad("%s: from and to must be times, such as \"2026-12-01T00:00:00Z\"", at)
		case w.From.Equal(w.To):
			return bad("%s: it begins and ends at %s: to is when it ends, and must be later than from", at, w.From.UTC().Format(time.RFC3339))
		case !w.From.Before(w.To):
			return bad("%s: it ends at %s, before it begins at %s", at, w.To.UTC().Format(time.RFC3339), w.From.UTC().Format(time.RFC3339))
		}
		if err := validateCells(w.Cells, bad, at+": cells"); err != nil {
			return err
		}
		for _, c := range w.Cells {
			if len(c.Pin) > 0 {
				return bad("%s: pin: cells of a window cannot be pinned", at)
			}
		}
		for j, o := range list[:i] {
			if o != nil && w.meets(o, (*CellQuota).same) {
				return bad("%s: it overlaps window %d, which has cells of the same kind and level", at, j+1)
			}
		}
	}
	return nil
}

// meets reports whether two windows have the same cells at a time.
func (w *CellWindow) meets(o *CellWindow, same func(a, b *CellQuota) bool) bool {
	return w.From.Before(o.To) && o.From.Before(w.To) && slices.ContainsFunc(w.Cells, func(x *CellQuota) bool {
		return slices.ContainsFunc(o.Cells, func(y *CellQuota) bool { return same(x, y) })
	})
}

// CheckWindows returns an error if two windows have the same cells at a time, however their kinds are written: the chains of all cells
// were found.
func (v *VirtualCluster) CheckWindows() error {
	for i, w := range v.Windows {
		for j, o := range v.Windows[:i] {
			if w.meets(o, (*CellQuota).SameCells) {
				return Errorf(CodeBadRequest, "virtual cluster %q: window %d: it overlaps window %d, which has cells of the same kind and level", v.Name, i+1, j+1)
			}
		}
	}
	return nil
}

// same reports whether two quotas are written as cells of the same kind, level and size.
func (c *CellQuota) same(o *CellQuota) bool {
	return c.Kind == o.Kind && cmp.Or(c.NodePool, DefaultNodePool) == cmp.Or(o.NodePool, DefaultNodePool) && c.Level == o.Level && c.Size == o.Size
}

func validateCells(list []*CellQuota, bad func(format string, args ...any) *Error, what string) error {
	if len(list) > MaxCellQuotas {
		return bad("%d blocks of %s: at most %d are allowed", len(list), what, MaxCellQuotas)
	}
	for i, c := range list {
		at := what + " " + strconv.Itoa(i+1)
		if c == nil {
			return bad("%s: it is missing", at)
		}
		if n := strings.Count(c.Kind, "/"); c.Kind != "" && (n < 2 || n > 3 || strings.HasPrefix(c.Kind, "/") || strings.HasSuffix(c.Kind, "/")) {
			return bad("%s: kind: must be vendor/type/model, such as \"nvidia/gpu/H100\", or with the tree of a node after it, not %q", at, clip(c.Kind))
		}
		switch {
		case c.NodePool != "" && (!ValidNodePool(c.NodePool) || c.NodePool == AllNodePool):
			return bad("%s: node_pool: must be the name of a pool, not %q", at, clip(c.NodePool))
		case c.Level == "":
			return bad("%s: level is missing", at).WithHint("`nomadish topology` shows the levels that there are")
		case c.Count < 0 || c.Count > MaxCellCount:
			return bad("%s: count: must be 0 to %d, not %d", at, MaxCellCount, c.Count)
		case c.Size < 0 || c.Size > MaxCellCount:
			return bad("%s: size: must be a number of nodes, not %d", at, c.Size)
		case len(c.Pin) > c.Count || len(c.Pin) > MaxCellPins:
			return bad("%s: %d pins: at most %d are allowed, one for each cell", at, len(c.Pin), min(c.Count, MaxCellPins))
		}
		for j, pin := range c.Pin {
			if pin == "" || slices.Contains(c.Pin[:j], pin) {
				return bad("%s: pin %q is empty or stated twice", at, clip(pin))
			}
		}
		if slices.ContainsFunc(list[:i], c.same) {
			return bad("%s: the same kind, level and size are stated twice", at).WithHint("add the counts up in one block")
		}
	}
	return nil
}

// What is called of virtual clusters, and answered.
type (
	// VirtualClusterUpsertEntry assigns cells to a namespace, or other ones.
	VirtualClusterUpsertEntry struct {
		VirtualCluster *VirtualCluster
		// WhenFree accepts an edit that cannot be admitted now: it is tried again after every unbinding.
		WhenFree bool `json:",omitempty" codec:",omitempty"`
		// CAS requires that the row was last changed at CheckIndex; 0: there is none.
		CAS        bool   `json:",omitempty" codec:",omitempty"`
		CheckIndex uint64 `json:",omitempty" codec:",omitempty"`
		Time       int64
		// EvalSeed derives the IDs of the evaluations of the owner's jobs.
		EvalSeed string
	}
	// VirtualClusterDeleteEntry removes a virtual cluster of which nothing is in use.
	VirtualClusterDeleteEntry struct {
		Name     string
		Time     int64
		EvalSeed string
	}
	// VirtualClusterUpsertRequest assigns cells to a namespace, or other ones.
	VirtualClusterUpsertRequest struct {
		VirtualCluster *VirtualCluster
		WhenFree       bool
		CAS            bool
		CheckIndex     uint64
		WriteRequest
	}
	// VirtualClusterDeleteRequest removes a virtual cluster.
	VirtualClusterDeleteRequest struct {
		Name string
		WriteRequest
	}
	// VirtualClusterReply is a virtual cluster; nil: there is none of the name.
	VirtualClusterReply struct {
		VirtualCluster *VirtualClusterStatus
		QueryMeta
	}
	// VirtualClusterListReply lists virtual clusters.
	VirtualClusterListReply struct {
		VirtualClusters []*VirtualClusterStatus
		QueryMeta
	}
)

// VirtualClusterStatus is a virtual cluster as it is shown: what it owns, what of it is bound, and who uses it.
type VirtualClusterStatus struct {
	Name      string
	OverLimit string
	Points    int64
	Pending   *PendingCells `json:",omitempty"`
	Cells     []*CellStatus
	// Bound are listed in the order of kinds and cells. Lists of virtual clusters leave them out.
	Bound []*BoundCell `json:",omitempty"`
	// GuaranteedGPUs are those in guaranteed use, OpportunisticGPUs those that jobs of the namespace use without a claim.
	GuaranteedGPUs    int
	OpportunisticGPUs int
	Windows           []*CellWindow
	// Changes are cells more, or less, for a time: by shifts and exchanges.
	Changes []CellChange `json:",omitempty"`
	// Waits is why not all cells are given that are due; empty: all are.
	Waits       string `json:",omitempty"`
	CreateIndex uint64
	ModifyIndex uint64
}

// CellStatus is what is owned of one kind, and what has become of it. All but GPUsUsed and Lent are numbers of cells.
type CellStatus struct {
	Kind     string
	NodePool string
	Level    string
	Size     int
	Given    int // now: by the cells, or by the window that it is in
	Won      int // in exchanges, beside what is given
	Offered  int // in exchanges that are not settled yet: they are owned until then
	Waiting  int `json:",omitempty"` // due, and not given yet, as what others have bound forbids it
	Bound    int
	Bad      int // of the bound ones: have a device that is not healthy
	Doomed   int // the hardware cannot hold them at present
	GPUs     int // devices of all that are given
	GPUsUsed int // in guaranteed use
	Lent     int // devices of bound cells that others use
}

// Free is how many cells are neither bound nor doomed.
func (c *CellStatus) Free() int { return c.Given + c.Won - c.Bound - c.Doomed }

// BoundCell is a cell that its owner uses, or that is pinned.
type BoundCell struct {
	Kind   string
	Level  string
	Cell   string // its name: "n1/socket-0", "rack:r1"
	NodeID string `json:",omitempty"`
	Pinned bool   `json:",omitempty"`
	Bad    bool   `json:",omitempty"` // one of its devices is not healthy
	Away   bool   `json:",omitempty"` // its node, or one of them, is not ready
	Used   int    // devices in guaranteed use
	Lent   int    // devices that others use
	// Allocs are the IDs of the allocations that use it by their claim, Borrowers those of others in it.
	Allocs    []string `json:",omitempty"`
	Borrowers []string `json:",omitempty"`
	// Workflows are the IDs of the workflows that have reserved devices of it: these are in use, whether anything runs on them or not.
	Workflows []string `json:",omitempty"`
}
