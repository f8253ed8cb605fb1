package forecast

import (
	"slices"
	"time"
)

// Stay is that an instance is on a node.
type Stay struct {
	Node     string
	From, To time.Time // To: zero: it has not ended
}

func (s *Stay) at(t time.Time) bool { return !s.From.After(t) && (s.To.IsZero() || s.To.After(t)) }

// Stays are those of instances, by namespace and name: "default/train.g[0]".
type Stays map[string][]Stay

// At returns where an instance is at a time; nil: nowhere.
func (s Stays) At(name string, t time.Time) *Stay {
	i := slices.IndexFunc(s[name], func(x Stay) bool { return x.at(t) })
	if i < 0 {
		return nil
	}
	return &s[name][i]
}

// After reports whether an instance comes to a node after a time.
func (s Stays) After(name string, t time.Time) bool {
	return slices.ContainsFunc(s[name], func(x Stay) bool { return x.From.After(t) })
}

// Begin notes that an instance is on a node from now on.
func (s Stays) Begin(name, node string, now time.Time) {
	s[name] = append(s[name], Stay{Node: node, From: now})
}

// End notes that it is there no more.
func (s Stays) End(name string, now time.Time) {
	if list := s[name]; len(list) > 0 && list[len(list)-1].To.IsZero() {
		list[len(list)-1].To = now
	}
}

// recorder is an observer that records where instances are.
type recorder struct {
	observer
	l *leader
	Stays
}

func nameOf(in *instance) string { return in.job.Namespace + "/" + in.name }

func (r recorder) starts(in *instance) {
	r.Begin(nameOf(in), in.node, in.started)
	r.observer.starts(in)
}

func (r recorder) ended(in *instance) {
	r.End(nameOf(in), r.l.now)
	r.observer.ended(in)
}

func (r recorder) stopped(in *instance) {
	r.End(nameOf(in), r.l.now)
	r.observer.stopped(in)
}
