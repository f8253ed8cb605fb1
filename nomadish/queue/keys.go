package queue

import (
	"slices"
	"sync"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// RequestKeys are the request keys and positions of the blocked evaluations of one state, at most one of a job, for the brokers of forks of it: finding them
// is a good part of what a forecast begins with. They do not change, so several brokers may use them at a time.
type RequestKeys struct {
	known map[*structs.Evaluation]*blockedKey
}

// blockedKey is what RequestKeys have of a blocked evaluation.
type blockedKey struct {
	requestKey scheduler.RequestKey
	position   position
	found      bool
}

// RequestKeysOf finds those of a state. Two goroutines do, if beside is set.
func RequestKeysOf(snap *state.Snapshot, beside bool) *RequestKeys {
	evals := slices.Collect(snap.OpenEvals(nil, structs.EvalStatusBlocked))
	keys := make([]blockedKey, len(evals))
	config, reservations := snap.SchedulerConfig(nil), map[structs.NamespacedID]int{}
	for r := range snap.Reservations(nil) {
		reservations[jobOf(r)]++
	}
	find := func(from, to int) {
		defer func() { _ = recover() }() // what is not found here, the broker looks for, and whoever runs that one learns by what it fails
		b := &blocked{config: &config, reservations: reservations}
		for i := from; i < to; i++ {
			keys[i] = blockedKey{b.findRequestKey(snap, evals[i]), b.findPosition(snap, evals[i]), true}
		}
	}
	half := len(evals)
	if beside {
		half /= 2
	}
	var wg sync.WaitGroup
	wg.Go(func() { find(half, len(evals)) })
	find(0, half)
	wg.Wait()
	k := &RequestKeys{make(map[*structs.Evaluation]*blockedKey, len(evals))}
	for i := range keys {
		if keys[i].found {
			k.known[evals[i]] = &keys[i]
		}
	}
	return k
}

// of returns what is known of an evaluation; nil: nothing is.
func (k *RequestKeys) of(e *structs.Evaluation) *blockedKey {
	if k == nil {
		return nil
	}
	return k.known[e]
}
