package admit

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// What errors state about cells that cannot be had: what there is instead, and who has them. It is stored with edits that wait, so it must be the
// same on every server: whatever is listed is sorted.

// siteSizes returns how many nodes the cells of each level above nodes have that can be owned of a chain, all registered nodes ready.
func siteSizes(w *world.World, key world.ChainKey) map[string][]int {
	sizes := map[string][]int{}
	chains := emptyChains(w)
	if chains[key] == nil {
		return sizes
	}
	chain := chains[key].View()
	for _, b := range chain.Balances() { // by level and size
		if b.Kind.Size > 0 && chain.Ownable(b.Kind) == nil {
			name := chain.LevelName(b.Kind)
			sizes[name] = append(sizes[name], b.Kind.Size)
		}
	}
	return sizes
}

// sizeList writes numbers of nodes: "2, 4 or 8".
func sizeList(sizes []int) string {
	parts := make([]string, len(sizes))
	for i, n := range sizes {
		parts[i] = strconv.Itoa(n)
	}
	if n := len(parts); n > 1 {
		return strings.Join(parts[:n-1], ", ") + " or " + parts[n-1]
	}
	return strings.Join(parts, "")
}

// otherSizes is what an error about cells of a size adds: which sizes there are.
func otherSizes(w *world.World, key world.ChainKey, level string) string {
	if sizes := siteSizes(w, key)[level]; len(sizes) > 0 {
		return fmt.Sprintf("; those with %s nodes can be owned", sizeList(sizes))
	}
	return "; no node of that kind is in one"
}

// pinRefused returns the error of a pin that cannot be bound after an edit. It names who has the cell, and what may be done.
func pinRefused(w *world.World, e *world.Edit, owner string, claims []structs.CellClaim, s *world.Shortage) error {
	claim, name := pinClaim(claims, s)
	r := pinRefusal{w, e, owner, claim, s}
	bad := func(code structs.Code, format string, args ...any) *structs.Error {
		return structs.Errorf(code, "pin %q: "+format, append([]any{name}, args...)...)
	}
	if s.IsTaken() {
		if text, hint := r.ownerNow(); text != "" {
			return bad(structs.CodeConflict, "%s", text).WithHint("%s", hint)
		}
		return bad(structs.CodeConflict, "the cell, or a part of it, is bound already").WithHint("`nomadish topology` shows by whom; another cell may be pinned, or none")
	}
	return r.other(bad)
}

// pinRefusal is a pin that cannot be bound after an edit.
type pinRefusal struct {
	before *world.World
	edit   *world.Edit
	owner  string
	claim  *structs.CellClaim // whose pin it is; nil: not known
	*world.Shortage
}

// ownerNow returns who has the cell, or a part of it, and what may be done; "" if nobody is found.
func (r pinRefusal) ownerNow() (text, hint string) {
	key, cell := r.Quota.Chain, r.Pin
	ed := world.ChainEdit(r.edit, key)
	if ed == nil || r.claim == nil {
		return "", ""
	}
	chain := ed.View()
	k, _ := chain.KindOf(r.claim.Level, r.claim.Size)
	var found *cells.Binding
	chain.NodesOf(*cell, func(id string) bool {
		mask := chain.Mask(len(chain.Levels())-1, 0)
		if cell.Site == "" {
			mask = chain.Mask(k.Level, cell.Index)
		}
		look := func(b cells.Binding, devices uint64) {
			if found == nil && devices&mask != 0 {
				found = &b
			}
		}
		chain.BoundOn(id, look)
		chain.AwayOn(id, look)
		return found == nil
	})
	if found == nil {
		return "", ""
	}
	name, jobs := boundCell(world.Base(r.edit), key, chain, *found)
	whose, hint := whoseCell(found.Owner)+" has", "pin another cell, or none"
	if found.Owner == r.owner {
		whose = "its virtual cluster has"
	}
	switch {
	case found.Pinned:
		text = fmt.Sprintf("%s the cell %s of level %s pinned", whose, name, chain.LevelName(found.Kind))
		hint += ", or take that pin out of its file first"
	default:
		text = fmt.Sprintf("%s the cell %s of level %s in use", whose, name, chain.LevelName(found.Kind))
		hint += ", or wait until the job has ended (-when-free does)"
	}
	return text + usedBy(jobs), hint
}

// whoseCell names an owner of cells.
func whoseCell(owner string) string {
	if project, is := strings.CutPrefix(owner, structs.ProjectOwnerPrefix); is {
		return fmt.Sprintf("project %q", project)
	}
	return fmt.Sprintf("virtual cluster %q", owner)
}

// other returns the error of a pin of a cell that nobody has.
func (r pinRefusal) other(bad func(structs.Code, string, ...any) *structs.Error) error {
	switch {
	case errors.Is(r.Err, cells.ErrUnsafe):
		return bad(structs.CodeConflict, "it would take cells that others own").WithHint("pin a cell of a node that is used already, or none")
	case !errors.Is(r.Err, cells.ErrQuota) || r.claim == nil: // else its owner has bound all its cells elsewhere
		return bad(structs.CodeBadRequest, "%w", r.Err)
	}
	var used []string
	if chain, known := r.before.Chain(r.Quota.Chain); known {
		k, _ := chain.KindOf(r.claim.Level, r.claim.Size)
		chain.Bindings(func(b cells.Binding, _ bool) bool {
			if b.Owner == r.owner && b.Kind == k {
				name, jobs := boundCell(r.before, r.Quota.Chain, chain, b)
				used = append(used, name+usedBy(jobs))
			}
			return true
		})
	}
	slices.Sort(used)
	if more := len(used) - maxUsers; more > 0 {
		used = append(used[:maxUsers], fmt.Sprintf("%d more", more))
	}
	return bad(structs.CodeConflict, "%w: it has bound %s", r.Err, strings.Join(used, ", ")).
		WithHint("pin one of these, or own more cells, or wait until a job that uses one has ended (-when-free does)")
}

// maxUsers is how many jobs or cells an error names.
const maxUsers = 3

func usedBy(jobs []string) string {
	if len(jobs) == 0 {
		return ""
	}
	if more := len(jobs) - maxUsers; more > 0 {
		jobs = append(jobs[:maxUsers:maxUsers], fmt.Sprintf("%d more", more))
	}
	return " (" + strings.Join(jobs, ", ") + ")"
}

// boundCell returns the name of a bound cell, and the jobs of its owner that use it.
func boundCell(w *world.World, key world.ChainKey, chain *cells.Chain, b cells.Binding) (name string, jobs []string) {
	node := ""
	chain.NodesOf(b.Cell, func(id string) bool {
		n, known := w.State(id)
		if !known || n.Node == nil {
			return true
		}
		node = n.Node.Name
		mask := chain.Mask(len(chain.Levels())-1, 0)
		if b.Cell.Site == "" {
			mask = chain.Mask(b.Kind.Level, b.Cell.Index)
		}
		for _, t := range n.Capacity.Trees {
			if of, ok := world.ChainOf(n.Node, t); !ok || of != key {
				continue
			}
			for _, u := range n.Usages {
				if job := fmt.Sprintf("job %q", u.Owner.Job); u.UsesCells() && u.CellOwner() == b.Owner && world.DeviceMask(t, u)&mask != 0 && !slices.Contains(jobs, job) {
					jobs = append(jobs, job)
				}
			}
		}
		return true
	})
	slices.Sort(jobs)
	return chain.CellName(b.Cell, b.Kind, node), jobs
}
