package forecast

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/nomadish/queueview"
	"github.com/nomadish/nomadish/structs"
)

// stay is that an instance is on a node.
type stay struct {
	node     string
	from, to time.Time // to: zero: it has not ended
}

func (s *stay) at(t time.Time) bool { return !s.from.After(t) && (s.to.IsZero() || s.to.After(t)) }

// stays are those of instances, by namespace and name.
type stays map[string][]stay

// at returns where an instance is at a time; nil: nowhere.
func (s stays) at(name string, t time.Time) *stay {
	i := slices.IndexFunc(s[name], func(x stay) bool { return x.at(t) })
	if i < 0 {
		return nil
	}
	return &s[name][i]
}

// now returns those that are somewhere.
func (s stays) now() stays {
	out := stays{}
	for name, list := range s { // each has its own place: the order cannot show
		if is := list[len(list)-1]; is.to.IsZero() {
			out[name] = []stay{is}
		}
	}
	return out
}

func (s stays) begin(name, node string, at time.Time) {
	s[name] = append(s[name], stay{node: node, from: at})
}

func (s stays) end(name string, at time.Time) {
	if list := s[name]; len(list) > 0 && list[len(list)-1].to.IsZero() {
		list[len(list)-1].to = at
	}
}

// recorder is a watch that records where instances are.
type recorder struct {
	*watch
	stays
}

func nameOf(in *instance) string { return in.job.Namespace + "/" + in.name }

func (r recorder) starts(in *instance) {
	r.begin(nameOf(in), in.node, in.started)
	r.watch.starts(in)
}

func (r recorder) ended(in *instance) {
	r.end(nameOf(in), r.l.now)
	r.watch.ended(in)
}

func (r recorder) stopped(in *instance) {
	r.end(nameOf(in), r.l.now)
	r.watch.stopped(in)
}

// Why a request starts later than was forecast at the latest.
const (
	arrived   = "who came and ranks higher has its room"
	passed    = "who ranks lower passed it in backfill and has its room"
	unpassed  = "who ranks higher has its room, and it was to pass that in backfill"
	reserved  = "its room is reserved for who ranks higher, and it was to pass that in backfill"
	delayed   = "who ranks higher and was to have ended has its room, as it started later, too"
	elsewhere = "who ranks higher and was to start elsewhere has its room"
)

// reasons are names of who is in the way of a request, by why.
type reasons map[string][]string

func (v reasons) String() string {
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(v)) {
		parts = append(parts, fmt.Sprintf("%s: %s", why, strings.Join(v[why], ", ")))
	}
	return strings.Join(parts, "; ")
}

// first is the strongest of the reasons: who is newly before a request, or passed it, or was not passed by it; else what follows from that for others.
func (v reasons) first() string {
	for _, why := range []string{arrived, passed, unpassed, reserved, delayed, elsewhere} {
		if v[why] != nil {
			return why
		}
	}
	return ""
}

// judge finds out who is in the way of a request at the time when it was forecast to start: who is on a node of those on which it was to start then,
// and was not to be there, and for whom these are reserved.
func (r *reality) judge(q *structs.RequestForecast, forecast stays, from time.Time, places map[structs.NamespacedID]int) reasons {
	at, mine := time.Unix(0, q.Latest.All), structs.NamespacedID{Namespace: q.Namespace, ID: q.JobID}
	nodes := map[string]bool{}
	for name, list := range forecast { // a set: the order cannot show
		for _, s := range list {
			nodes[s.node] = nodes[s.node] || jobOf(name) == mine
		}
	}
	out := reasons{}
	for _, name := range slices.Sorted(maps.Keys(r.stays)) {
		is, was, job := r.stays.at(name, at), forecast.at(name, at), jobOf(name)
		if is == nil || !nodes[is.node] || job == mine || was != nil && was.node == is.node {
			continue
		}
		why := delayed
		switch {
		case places[job] == 0 && is.from.After(from):
			why = arrived
		case places[job] > places[mine] && is.from.After(from):
			why = passed
		case was != nil:
			why = elsewhere
		case slices.ContainsFunc(forecast[name], func(s stay) bool { return s.from.After(at) }):
			why = unpassed
		}
		out[why] = append(out[why], name)
	}
	for _, h := range r.reserved[at.UnixNano()] {
		job := structs.NamespacedID{Namespace: h.Namespace, ID: h.JobID}
		if job == mine || !nodes[h.NodeID] {
			continue
		}
		why := reserved
		if places[job] > places[mine] {
			why = passed
		}
		out[why] = append(out[why], job.Namespace+"/"+job.ID)
	}
	return out
}

// jobOf is the job of an instance that is named with its namespace.
func jobOf(name string) structs.NamespacedID {
	ns, rest, _ := strings.Cut(name, "/")
	job, _, _ := strings.Cut(rest, ".")
	return structs.NamespacedID{Namespace: ns, ID: job}
}

// lookAt records what is reserved when all is done that is to be done at the times when requests are forecast to start.
func (r *reality) lookAt(f *structs.Forecast) {
	for _, q := range f.Requests {
		r.at(time.Unix(0, q.Latest.All).Add(1), func() { r.reserved[q.Latest.All] = slices.Collect(r.log.Store.Snapshot().Reservations(nil)) })
	}
}

// places are the places of jobs in the queue.
func (r *reality) places() map[structs.NamespacedID]int {
	out := map[structs.NamespacedID]int{}
	for i, l := range queueview.Order(r.log.Store.Snapshot(), r.now.UnixNano()) {
		if id := l.Job.NamespacedID(); out[id] == 0 {
			out[id] = i + 1
		}
	}
	return out
}
