package workflow

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
)

// missingGPUs finds GPUs among the amounts that a reason states as missing.
var missingGPUs = regexp.MustCompile(`\b\d+ GPUs?\b.* (is|are) missing`)

// withCells adds to why a workflow has no reservation that GPUs of cells are not counted, where that is why too few are there: those of its own namespace while its
// cells do not hold every stage, and those of others. A reason that names the cells states that itself.
func withCells(snap *state.Snapshot, namespace, pool, missing string) string {
	if !missingGPUs.MatchString(missing) || strings.Contains(missing, "cells of namespace") {
		return missing
	}
	w := snap.World()
	switch {
	case ownsIn(w, namespace, pool):
		return missing + fmt.Sprintf("; GPUs of the cells of namespace %q are not counted, as these do not hold every stage", namespace)
	case slices.ContainsFunc(w.Owners(), func(owner string) bool { return ownsIn(w, owner, pool) }):
		return missing + "; GPUs of cells that others own are not counted"
	}
	return missing
}

// ownsIn reports whether an owner has cells of nodes of a pool.
func ownsIn(w *scheduler.World, owner, pool string) bool {
	for _, q := range w.Quotas(owner) {
		if q.Chain.Pool == pool {
			return true
		}
	}
	return false
}
