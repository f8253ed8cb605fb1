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

// present returns those that are somewhere.
func present(s Stays) Stays {
	out := Stays{}
	for name, list := range s { // each has its own place: the order cannot show
		if is := list[len(list)-1]; is.To.IsZero() {
			out[name] = []Stay{is}
		}
	}
	return out
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
func (r *reality) judge(q *structs.RequestForecast, forecast Stays, from time.Time, places map[structs.NamespacedID]int) reasons {
	at, mine := time.Unix(0, q.Latest.All), structs.NamespacedID{Namespace: q.Namespace, ID: q.JobID}
	nodes := map[string]bool{}
	for name, list := range forecast { // a set: the order cannot show
		for _, s := range list {
			nodes[s.Node] = nodes[s.Node] || jobOf(name) == mine
		}
	}
	out := reasons{}
	for _, name := range slices.Sorted(maps.Keys(r.stays)) {
		is, was, job := r.stays.At(name, at), forecast.At(name, at), jobOf(name)
		if is == nil || !nodes[is.Node] || job == mine || was != nil && was.Node == is.Node {
			continue
		}
		why := delayed
		switch {
		case places[job] == 0 && is.From.After(from):
			why = arrived
		case places[job] > places[mine] && is.From.After(from):
			why = passed
		case was != nil:
			why = elsewhere
		case slices.ContainsFunc(forecast[name], func(s Stay) bool { return s.From.After(at) }):
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
