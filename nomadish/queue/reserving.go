package queue

import (
	"slices"
	"time"
)

// maxReserving bounds the requests that are tried because reservations ended.
const maxReserving = 8

// reserveNext has the first by rank be tried of those that may reserve room and may use nodes of classes of which some are reserved no more: who reserves
// these next goes by rank, and not by whose time comes first. Nothing need be free there: who had the room reserved has been placed, mostly.
func (b *blocked) reserveNext(classes map[string]bool, index uint64) {
	if len(classes) == 0 {
		return
	}
	var first []*entry
	for _, g := range b.groups { // order does not matter: ranks differ
		if g.key.entitled || !helpsAny(g.known, classes) {
			continue
		}
		for of := range g.users {
			w, some := of.first()
			if !some || !b.mayReserve(w) {
				continue
			}
			at, _ := slices.BinarySearchFunc(first, w, func(o, w *entry) int {
				if o.before(b.gates, w) {
					return -1
				}
				return 1
			})
			if at < maxReserving {
				first = slices.Insert(first, at, w)
				first = first[:min(len(first), maxReserving)]
			}
		}
	}
	for _, w := range first {
		w.group.freed = index
		b.open(w.group)
	}
}

// mayReserve reports whether a request has waited so long that it may reserve room, and has none reserved.
func (b *blocked) mayReserve(w *entry) bool {
	after, ever := b.config.ReserveAfter()
	return ever && b.reservations[w.eval.Job()] == 0 && b.gates.opts.Clock.Now().Sub(time.Unix(0, w.eval.CreateTime)) >= after
}
