package queueview

import (
	"context"
	"time"

	"github.com/hashicorp/go-metrics"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// reportEvery is how often the gauges are set. A look at 100,000 requests takes 0.1 s.
const reportEvery = 10 * time.Second

// Figures are the length of one class of a pool's queue.
type Figures struct {
	Requests int // groups of jobs that wait
	Missing  int // instances of them
	Since    int64
}

// Series names the figures of one class and pool.
type Series struct{ Pool, Class string }

// Count counts the requests that wait by pool and class.
func Count(snap *state.Snapshot) map[Series]Figures {
	out := map[Series]Figures{}
	var last *structs.Job // neighbours are of one job
	for request := range snap.Requests().Waiting(nil, structs.AllNamespaces) {
		if last == nil || last.ID != request.JobID || last.Namespace != request.Namespace {
			last = snap.Job(nil, request.Namespace, request.JobID)
		}
		if last == nil {
			continue
		}
		entitled := scheduler.Entitled(snap.World(), last, request.Group, request.Missing)
		count := func(class string, missing int) {
			k := Series{poolOf(last), class}
			f := out[k]
			f.Requests++
			f.Missing += missing
			if f.Since == 0 || request.Since < f.Since {
				f.Since = request.Since
			}
			out[k] = f
		}
		if entitled > 0 {
			count(structs.ClassGuaranteed, entitled)
		}
		if request.Missing > entitled {
			count(structs.ClassOpportunistic, request.Missing-entitled)
		}
	}
	return out
}

// Report keeps the gauges queue.length, .missing and .oldest_seconds, by node pool
// and class, until ctx ends; then they are 0, for another server leads. The leader runs it.
func Report(ctx context.Context, store *state.Store) {
	shown := map[Series]bool{}
	defer func() { show(shown, nil, 0) }()
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		show(shown, Count(store.Snapshot()), time.Now().UnixNano())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// show sets the gauges. What was shown and is no more is set to 0, once.
func show(shown map[Series]bool, now map[Series]Figures, at int64) {
	for k := range now { // order does not matter: each gauge by itself
		shown[k] = true
	}
	for k := range shown { // order does not matter: each gauge by itself
		f := now[k]
		labels := []metrics.Label{{Name: "node_pool", Value: k.Pool}, {Name: "class", Value: k.Class}}
		set := func(name string, value float32) {
			metrics.SetGaugeWithLabels([]string{"nomad", "queue", name}, value, labels)
		}
		set("length", float32(f.Requests))
		set("missing", float32(f.Missing))
		oldest := float32(0)
		if f.Requests > 0 {
			oldest = float32(time.Duration(max(0, at-f.Since)).Seconds())
		}
		set("oldest_seconds", oldest)
		if f.Requests == 0 {
			delete(shown, k)
		}
	}
}
