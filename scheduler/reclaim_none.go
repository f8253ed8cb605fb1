package scheduler

import "github.com/nomadish/nomadish/scheduler/preempt"

// allOrNone tells whether a group takes nothing if it does not get all (partial = "none").
func (s *scheduler) allOrNone(work *groupWork) bool {
	return s.in.Job.Partial == string(preempt.PartialNone) && !s.in.Job.PerNode() && len(work.place) > 0
}

// allOrNone places all missing instances of a group, by taking from others if need be, or
// none of them. It tells how many count as taken.
func (g *groupRun) allOrNone() (taken int) {
	s, work := g.s, g.work
	stops, before := len(s.plan.Stop), s.mark()
	base := s.edit
	s.edit = base.World().Edit()
	trial := s.newRun(work, s.edit, s.fit(work.group))
	var short []placement
	for _, p := range work.place {
		if len(short) == 0 { // nothing is freed after another found no room
			if f, ok := trial.seek(p); ok {
				trial.accept(p, f)
				continue
			}
		}
		short = append(short, p)
	}
	if len(short) == 0 || s.mayReclaim() && trial.makeRoom(short) {
		g.search, g.batch, g.nodes = trial.search, trial.batch, trial.nodes
		g.metrics.ScoreMetaData = trial.metrics.ScoreMetaData
		return len(work.place)
	}
	if trial.batch != nil {
		for _, in := range trial.batch.Instances {
			s.census.move(work.group.Name, trial.batch.Nodes[in.Node].ID, -1)
		}
	}
	s.backTo(before)
	s.plan.Stop = s.plan.Stop[:stops]
	s.edit = base
	for _, p := range work.place {
		g.fail(p)
		if p.unwell {
			taken++
		}
	}
	return taken
}

// makeRoom gives all of these instances room that others make, or tells that it cannot.
func (g *groupRun) makeRoom(list []placement) bool {
	r := g.s.reclaimer(g.search.e)
	find := r.finder(g)
	for _, p := range list {
		if !r.assign(find, p) {
			r.drop()
			return false
		}
	}
	return len(r.settle()) == 0
}
