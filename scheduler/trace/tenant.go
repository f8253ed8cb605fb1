package trace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/structs"
)

// tenant is who owns something, or a namespace that owns nothing beside those who do.
type tenant struct {
	name string
	owns []ownedCells
	gpus int
	// waits: what is beyond its limit waits (over_limit = "wait").
	waits bool
	// tree is what it owns, with its guaranteed work where it lies. Only where tenants share by cells.
	tree *virtualTree
	// alone is a cluster of its own of the same cells: with all its work in it, placed by itself, that has room there.
	alone *virtualTree
	// beyond is its work that has no room in alone, opportunistic what is not guaranteed, in the order in which it began.
	beyond, opportunistic []*run
	running, guaranteed   int64 // thousandths of GPUs that its work uses, and uses by right

	changed bool // since its losses were looked at
	// losses are by what it owns, and by a cluster of its own.
	losses, aloneLosses lossCount

	requeued int64
	// used and byRight add running and guaranteed up over time, in thousandths times seconds; untilLast is used at the last arrival.
	used, byRight, untilLast float64
}

// tenants is all of them; its methods may be called on nil, if nobody owns anything.
type tenants struct {
	sharing string
	chains  []*chain
	devices map[string]map[string]deviceAt
	byName  map[string]*tenant
	list    []*tenant // in the order of admission, those who own nothing behind them
	// unbound counts how often guaranteed work ended, from 1; raised is what it was when opportunistic work was last looked at.
	unbound, raised uint64
}

// CheckVirtualClusters returns an error if nodes cannot give tenants what virtual clusters state, before a replay.
func CheckVirtualClusters(nodes []*structs.Node, config structs.SchedulerConfiguration, list []*structs.VirtualCluster) error {
	edit := scheduler.NewWorld().Edit()
	edit.Configure(&config)
	for _, n := range nodes {
		edit.UpsertNode(n)
	}
	_, err := newTenants(&Config{Nodes: nodes, Scheduler: config, VirtualClusters: list}, edit)
	return err
}

// newTenants reads who owns what, and gives it to them on an edit if they share by cells.
func newTenants(c *Config, e *scheduler.Edit) (*tenants, error) {
	if len(c.VirtualClusters) == 0 {
		return nil, nil // nobody owns anything
	}
	o := &tenants{sharing: cmp.Or(c.Sharing, SharingCells), byName: map[string]*tenant{}, unbound: 1}
	if !slices.Contains(Sharings(), o.sharing) {
		return nil, fmt.Errorf("sharing %q: must be one of %s", o.sharing, strings.Join(Sharings(), ", "))
	}
	if c.Drop {
		return nil, fmt.Errorf("virtual clusters cannot be combined with the mode drop, in which no job ends")
	}
	o.chains, o.devices = chainsOf(e, c.Nodes)
	if o.sharing != SharingCells {
		e = e.World().Edit() // the others are compared with the same, and own nothing
	}
	for i, v := range c.VirtualClusters {
		if o.byName[v.Name] != nil {
			return nil, fmt.Errorf("virtual cluster %q: stated twice", v.Name)
		}
		owns, err := admit(e, v, o.chains, uint64(i)+1, c.Scheduler.SiteLevels()) // not negative
		if err != nil {
			return nil, err
		}
		o.add(v.Name, owns).waits = v.OverLimit == structs.OverLimitWait
	}
	return o, nil
}

func (o *tenants) add(name string, owns []ownedCells) *tenant {
	t := &tenant{name: name, owns: owns, tree: newVirtualTree(o.chains, owns), alone: newVirtualTree(o.chains, owns)}
	t.gpus = t.alone.gpus()
	o.byName[name] = t
	o.list = append(o.list, t)
	return t
}

// of returns a namespace's tenant; nil if nobody owns anything.
func (o *tenants) of(name string) *tenant {
	if o == nil {
		return nil
	}
	if t := o.byName[name]; t != nil {
		return t
	}
	if len(o.list) >= maxTenants {
		name = OtherTenants
		if t := o.byName[name]; t != nil {
			return t
		}
	}
	return o.add(name, nil)
}

// by reports whether tenants share in a way.
func (o *tenants) by(sharing string) bool { return o != nil && o.sharing == sharing }

// guaranteed is what all use by right, in thousandths of GPUs.
func (o *tenants) guaranteed() (milli int64) {
	if o != nil {
		for _, t := range o.list {
			milli += t.guaranteed
		}
	}
	return milli
}

// arrived notes the time of an arrival.
func (o *tenants) arrived() {
	if o != nil {
		for _, t := range o.list {
			t.untilLast = t.used
		}
	}
}

// advance adds up what is used in some nanoseconds.
func (t *tenant) advance(nanoseconds int64) {
	t.used += float64(t.running) * float64(nanoseconds) / 1e9
	t.byRight += float64(t.guaranteed) * float64(nanoseconds) / 1e9
}

// begin notes that instances of a job run, by right or not.
func (r *replay) begin(x *run) error {
	t := x.job.tenant
	if t == nil {
		return nil
	}
	t.changed = true
	milli := int64(x.live) * x.job.row.instanceMilli()
	t.running += milli
	if x.guaranteed {
		t.guaranteed += milli
		if err := r.useCells(x); err != nil {
			return err
		}
	} else if x.job.row.GPUs > 0 && t.gpus > 0 && r.tenants.sharing != SharingQueue {
		t.opportunistic = append(t.opportunistic, x)
	}
	if x.job.row.wholeGPUs() && x.alone == nil && !t.placeAlone(x) {
		t.beyond = append(t.beyond, x)
	}
	return nil
}

// placeAlone places all instances of a run in a cluster of the tenant's own. It reports whether it did.
func (t *tenant) placeAlone(x *run) bool {
	uses := make([]cellUse, 0, x.live)
	for range x.live {
		u, ok := t.alone.place(x.job.row)
		if !ok {
			for _, u := range uses {
				t.alone.release(u)
			}
			return false
		}
		uses = append(uses, u)
	}
	x.alone = uses
	return true
}

// useCells notes what cells a guaranteed run uses.
func (r *replay) useCells(x *run) error {
	if !r.tenants.by(SharingCells) {
		return nil
	}
	x.cells = make([][]cellUse, len(x.ids))
	for i := range x.ids {
		if x.gone != nil && x.gone[i] {
			continue
		}
		if err := r.useCellsOf(x, i); err != nil {
			return fmt.Errorf("allocation %s: %w", x.ids[i], err)
		}
	}
	return nil
}

// devicesOf returns the chain that an instance's devices are of, its number in the chains, and the devices' numbers on their node as
// bits. It returns an error if they are in no chain, or in several.
func (r *replay) devicesOf(w *scheduler.World, x *run, i int) (of *cells.Chain, chain int, mask uint64, err error) {
	node := r.ledger.Machines[x.nodes[i]].ID
	chain = -1
	for _, d := range x.batch.Instances[i].Devices[taskName] {
		for _, id := range d.DeviceIDs {
			at, known := r.tenants.devices[node][id]
			if !known || chain >= 0 && chain != at.chain {
				return nil, 0, 0, fmt.Errorf("device %s is in no cell", id)
			}
			chain = at.chain
			mask |= 1 << at.number
		}
	}
	if chain < 0 {
		return nil, 0, 0, errors.New("it has no device")
	}
	of, found := w.Chain(r.tenants.chains[chain].key)
	if !found {
		return nil, 0, 0, errors.New("its devices are in no cell")
	}
	return of, chain, mask, nil
}

// useCellsOf notes what cells an instance uses: those of its level that its devices lie in.
func (r *replay) useCellsOf(x *run, i int) error {
	terms, node := x.batch.Resources.Shared.Terms, r.ledger.Machines[x.nodes[i]].ID
	of, chain, mask, err := r.devicesOf(r.world, x, i)
	if err != nil {
		return fmt.Errorf("it claims cells, and %w", err)
	}
	k, known := of.KindOf(terms.CellLevel, terms.CellSize)
	if !known {
		return fmt.Errorf("it claims cells of level %s, which there is not", terms.CellLevel)
	}
	for _, c := range of.CellsOf(node, k, mask) {
		name, first := cellName(node, c.Site, terms.CellLevel, c.Index), 0
		if c.Site == "" {
			first = c.Index * of.Devices(k)
		}
		u, err := x.job.tenant.tree.use(chain, terms.CellLevel, terms.CellSize, name, node, first, mask)
		if err != nil {
			return err
		}
		x.cells[i] = append(x.cells[i], u)
	}
	return nil
}

// leave notes that instances of a run run no more: the one given, or all that are left.
func (r *replay) leave(x *run, only int) {
	t := x.job.tenant
	if t == nil {
		return
	}
	t.changed = true
	n := 0
	for i := range x.ids {
		if only >= 0 && i != only || only < 0 && x.gone != nil && x.gone[i] {
			continue
		}
		n++
		if x.cells != nil {
			for _, u := range x.cells[i] {
				t.tree.release(u)
			}
		}
		if len(x.alone) > 0 {
			t.alone.release(x.alone[len(x.alone)-1])
			x.alone = x.alone[:len(x.alone)-1]
		}
	}
	milli := int64(n) * x.job.row.instanceMilli()
	t.running -= milli
	if x.guaranteed {
		t.guaranteed -= milli
		r.tenants.unbound++
	} else {
		t.opportunistic = slices.DeleteFunc(t.opportunistic, (*run).over)
	}
	// What had no room in a cluster of its own may have some now.
	t.beyond = slices.DeleteFunc(t.beyond, func(x *run) bool { return x.over() || t.placeAlone(x) })
}

// over reports whether nothing of a run runs any more.
func (x *run) over() bool { return x.ended || x.live == 0 || x.suspended }

// wants reports whether a request is entitled to what it misses, as far as amounts say: whether it has the room is for the scheduler to
// say, or, if tenants own numbers of GPUs, for nobody else.
func (r *replay) wants(j *job) bool {
	t := j.tenant
	if t == nil || t.gpus == 0 {
		return false
	}
	switch r.tenants.sharing {
	case SharingCells:
		n := 1
		if j.row.Gang {
			n = j.request.Missing
		}
		return j.row.wholeGPUs() && n*j.row.GPUs <= t.tree.most()
	case SharingCounts:
		return j.row.GPUs > 0 && t.guaranteed+j.missingMilli() <= int64(t.gpus)*structs.DeviceShareWhole
	}
	return false
}

// mayBorrow reports whether a request may run on what others own, or nobody.
func (r *replay) mayBorrow(j *job) bool {
	t := j.tenant
	if t == nil || !t.waits || !j.row.wholeGPUs() || r.tenants.sharing == SharingQueue {
		return true
	}
	n := int64(1)
	if j.row.Gang {
		n = int64(j.request.Missing)
	}
	return t.guaranteed+n*j.row.instanceMilli() <= int64(t.gpus)*structs.DeviceShareWhole
}
