package scheduler

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// maxNodesTried bounds the nodes that are tried for a gang that must be on one node.
// The first nearly always does, as all that the members ask fits there together.
const maxNodesTried = 16

// gangPlacer places one gang as a whole.
type gangPlacer struct {
	s    *scheduler
	gw   *gangWork
	base *Edit // with the room of what leaves with the placement
	asks []amount
	meta []bool            // whether groups look at meta
	held map[string]amount // reserved, by class
	// What is explained, if there is no room: the domains of the level that was
	// required, and the last trial.
	looked []*room
	failed *trial
}

// placeGang places what a gang lacks. What it gives is to be looked at later.
func (s *scheduler) placeGang(gw *gangWork) []later {
	for _, work := range gw.works {
		s.queued[work.group.Name] = 0
	}
	if gw.wanted() == 0 {
		return nil
	}
	if !gw.whole {
		s.growGang(gw)
		return nil
	}
	x := &gangPlacer{s: s, gw: gw, base: s.edit.World().Edit()}
	for _, st := range gw.stops {
		x.base.release(st.AllocID)
	}
	for _, work := range gw.works {
		x.asks = append(x.asks, askAmount(newAsk(s.in, work.group)))
		x.meta = append(x.meta, s.fit(work.group).looksAtMeta())
	}
	if t := x.place(); t != nil {
		x.keep(t)
		return nil
	}
	x.explain()
	if gw.force != nil {
		return []later{*gw.force}
	}
	return nil
}

// place finds places for the first members: under one cell of the level that is
// wanted, else of the lowest level above it, else, unless that is required, anywhere.
func (x *gangPlacer) place() *trial {
	want := x.gw.spec.topology
	if want == nil {
		return x.try(nil)
	}
	levels := x.s.in.Config.SiteLevels()
	_, at, site := x.s.siteLevel(want.Level)
	switch {
	case site:
		levels = levels[at:]
	case x.s.nodeLevel(want.Level):
		if t := x.onOneNode(); t != nil || want.Required {
			return t
		}
	case want.Required:
		return nil
	}
	for _, level := range levels {
		for _, r := range x.candidates(level) {
			if x.recount(r); !r.enough(x) {
				continue
			}
			if t := x.try(r.domain); t != nil {
				return t
			}
			r.holds[x.failed.short] = x.failed.found(x.failed.short) // less than it seemed
		}
		if want.Required {
			return nil
		}
	}
	return x.try(nil)
}

// trial is one try to place a gang's first members, on an edit that is kept only if
// all of them find room.
type trial struct {
	edit  *Edit
	runs  []*groupRun // by group
	short int         // the group that found no room, of a trial that failed
}

// found is how many of a group found room.
func (t *trial) found(group int) int64 {
	if b := t.runs[group].batch; b != nil {
		return int64(len(b.Instances))
	}
	return 0
}

// try places all first members under a domain (nil: anywhere), or nothing. Groups of
// large instances go first, as small ones find room between them.
func (x *gangPlacer) try(d *domain) *trial {
	s := x.s
	t := &trial{edit: x.base.World().Edit()}
	for _, work := range x.gw.works {
		f := s.fit(work.group)
		if d != nil {
			f = f.in(d)
		}
		run := s.newRun(work, t.edit, f)
		run.under(d)
		t.runs = append(t.runs, run)
	}
	for _, a := range x.gw.old {
		s.census.move(a.TaskGroup, a.NodeID, -1)
	}
	order := make([]int, len(x.asks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compareAmounts(x.asks[b], x.asks[a]) })
	whole := true
	for _, i := range order {
		run := t.runs[i]
		run.search.rewind() // others have taken room since it was made
		for _, p := range run.work.place[:run.work.first] {
			f, ok := run.seek(p)
			if !ok {
				whole, t.short = false, i
				break
			}
			run.accept(p, f)
		}
		if !whole && d != nil {
			break // where anywhere is tried, the others are counted too
		}
	}
	if whole {
		return t
	}
	x.failed = t
	x.undo(t)
	return nil
}

// undo forgets where a trial's members would have been.
func (x *gangPlacer) undo(t *trial) {
	for _, a := range x.gw.old {
		x.s.census.move(a.TaskGroup, a.NodeID, 1)
	}
	for _, run := range t.runs {
		if run.batch == nil {
			continue
		}
		for _, in := range run.batch.Instances {
			x.s.census.move(run.work.group.Name, run.batch.Nodes[in.Node].ID, -1)
		}
	}
}

// under keeps a run to the one node of a domain, if it is one.
func (g *groupRun) under(d *domain) {
	g.only = ""
	if d != nil {
		g.only = d.nodeID
	}
}

// onOneNode places all first members on one node.
func (x *gangPlacer) onOneNode() *trial {
	s := x.s
	joint := x.joint()
	find := newSearch(x.base, newAsk(s.in, joint), newFeasibility(s.in.Job, joint, s.m), s.rng, s.policy())
	var tried []string
	for range maxNodesTried {
		f, ok := find.next(tried)
		if !ok || slices.Contains(tried, f.node.id) {
			return nil
		}
		if t := x.try(nodeDomain(f.node.node)); t != nil {
			return t
		}
		tried = append(tried, f.node.id)
	}
	return nil
}

// keep takes a trial over into the plan, and places what more of the gang finds room.
func (x *gangPlacer) keep(t *trial) {
	s := x.s
	s.edit = t.edit
	s.plan.Stop = append(s.plan.Stop, x.gw.stops...)
	s.plan.AllAtOnce = s.plan.AllAtOnce || x.gw.spec.told
	for _, run := range t.runs {
		rest := run.work.place[run.work.first:]
		if len(rest) > 0 {
			run.search.rewind() // others have taken room since it was made
		}
		for _, p := range rest {
			x.gw.more(run, p)
		}
	}
	s.seat(x.gw, t.runs, nil)
}

// more places one member that need not come with others. A topology that is only
// preferred is given up where it has no room.
func (gw *gangWork) more(run *groupRun, p placement) {
	s, group := run.s, run.work.group
	if s.failed[group.Name] == nil {
		f, ok := run.seek(p)
		if !ok && run.search.f.within != nil && !gw.spec.topology.Required {
			run.search = s.newSearch(group, run.search.e, s.fit(group))
			run.under(nil)
			f, ok = run.seek(p)
		}
		if ok {
			run.accept(p, f)
			return
		}
	}
	run.fail(p)
}

// growGang places members of a gang that is up, beside those that stay.
func (s *scheduler) growGang(gw *gangWork) {
	var live []*structs.Allocation
	var last *structs.RescheduleTracker
	for _, a := range s.live {
		if slices.ContainsFunc(gw.works, func(w *groupWork) bool { return w.group.Name == a.TaskGroup }) {
			live = append(live, a)
			if t := a.RescheduleTracker; t != nil && (last == nil || len(t.Events) > len(last.Events)) {
				last = t
			}
		}
	}
	slices.SortFunc(live, func(a, b *structs.Allocation) int {
		return cmp.Or(cmp.Compare(rankOf(a), rankOf(b)), cmp.Compare(a.ID, b.ID))
	})
	d := s.beside(gw, live)
	var runs []*groupRun
	for _, work := range gw.works {
		f := s.fit(work.group)
		if d != nil {
			f = f.in(d)
		}
		run := s.newRun(work, s.edit, f)
		run.under(d)
		runs = append(runs, run)
		for _, p := range work.place {
			if p.tracker == nil && !gw.spec.byMember {
				p.tracker = last // they fail as one
			}
			gw.more(run, p)
		}
	}
	s.seat(gw, runs, live)
}

// beside is the domain that others of a gang are to be under: that of those which
// run; nil: any.
func (s *scheduler) beside(gw *gangWork, live []*structs.Allocation) *domain {
	want := gw.spec.topology
	if want == nil || len(live) == 0 {
		return nil
	}
	n, known := s.w.Node(live[0].NodeID)
	if !known {
		return nil
	}
	if level, _, site := s.siteLevel(want.Level); site {
		return domainOf(n, level)
	}
	if s.nodeLevel(want.Level) {
		return nodeDomain(n)
	}
	return nil
}

// seat ends the runs, and tells the placed members their ranks and where all are: they
// themselves and those that run. Whoever stands for a member has its rank.
func (s *scheduler) seat(gw *gangWork, runs []*groupRun, live []*structs.Allocation) {
	g := &seating{s: s}
	for _, a := range live {
		if a.Gang != nil && !g.taken(a.Gang.Rank) {
			g.sit(a.Gang.Rank, hostOf(s, a), a.NodeID)
		}
	}
	var others []newcomer
	for _, run := range runs {
		if run.batch == nil {
			continue
		}
		run.metrics.classes(run.search.anywhere(), nil)
		run.batch.Metrics = run.metrics.AllocMetric
		s.plan.Place = append(s.plan.Place, run.batch)
		var before map[int]int
		if live != nil {
			before = run.ranksBefore()
		}
		for i := range run.batch.Instances {
			c := newcomer{run.batch, i}
			if rank, had := before[c.instance().Index]; had && !g.taken(rank) {
				g.welcome(c, rank)
			} else {
				others = append(others, c)
			}
		}
	}
	for _, c := range others {
		g.welcome(c, g.free())
	}
	told := &structs.AllocGang{Size: len(g.hosts), Hosts: g.hosts, Level: s.reached(g.nodes)}
	for _, run := range runs {
		if run.batch != nil && gw.spec.told {
			run.batch.Gang = told
		}
	}
}

// anywhere is the search without the domain that it was kept to.
func (s *search) anywhere() *search {
	if s.f.within == nil {
		return s
	}
	c := *s
	c.f = s.f.in(nil)
	c.byClass = c.f.looksAtMeta()
	return &c
}

// ranksBefore are the ranks of the members that instances stand for, by index.
func (g *groupRun) ranksBefore() map[int]int {
	out := map[int]int{}
	for _, p := range g.work.place {
		if p.previous != nil && p.previous.Gang != nil {
			out[p.index] = p.previous.Gang.Rank
		}
	}
	return out
}

// newcomer is a member that has a node, and gets a rank.
type newcomer struct {
	batch *structs.PlacementBatch
	at    int
}

func (c newcomer) instance() *structs.Instance { return &c.batch.Instances[c.at] }

// seating is the ranks of a gang.
type seating struct {
	s     *scheduler
	hosts []string // by rank; "": nobody has it
	nodes []string // of all members
	next  int      // all ranks below it are taken
}

func (g *seating) taken(rank int) bool {
	return rank < 0 || (rank < len(g.hosts) && g.hosts[rank] != "")
}

// free gives the lowest rank that nobody has.
func (g *seating) free() int {
	for g.taken(g.next) {
		g.next++
	}
	return g.next
}

func (g *seating) sit(rank int, host, nodeID string) {
	for len(g.hosts) <= rank {
		g.hosts = append(g.hosts, "")
	}
	g.hosts[rank] = host
	g.nodes = append(g.nodes, nodeID)
}

func (g *seating) welcome(c newcomer, rank int) {
	in := c.instance()
	in.Rank = rank
	node := c.batch.Nodes[in.Node].ID
	g.sit(rank, hostPortOf(g.s, node, in.Ports), node)
}

func rankOf(a *structs.Allocation) int {
	if a.Gang == nil {
		return 0
	}
	return a.Gang.Rank
}

// hostOf is where a running member is reached.
func hostOf(s *scheduler, a *structs.Allocation) string {
	if g := a.Gang; g.Rank < len(g.Hosts) && g.Hosts[g.Rank] != "" {
		return g.Hosts[g.Rank]
	}
	var ports []structs.PortMapping
	if a.AllocatedResources != nil {
		ports = a.AllocatedResources.Shared.Ports
	}
	return hostPortOf(s, a.NodeID, ports)
}

// hostPortOf is where a member on a node is reached: the node's address, with the
// member's first port if it has any.
func hostPortOf(s *scheduler, nodeID string, ports []structs.PortMapping) string {
	n, known := s.w.Node(nodeID)
	if !known {
		return nodeID
	}
	host := n.Attributes["unique.network.ip-address"]
	if at := strings.LastIndexByte(n.HTTPAddr, ':'); host == "" && at >= 0 {
		host = strings.Trim(n.HTTPAddr[:at], "[]")
	}
	host = cmp.Or(host, n.Name, nodeID)
	if len(ports) == 0 {
		return host
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]" // an IPv6 address
	}
	return host + ":" + strconv.Itoa(ports[0].Value)
}
