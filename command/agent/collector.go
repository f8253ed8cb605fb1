package agent

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// serverHeadroom is by how much a server's heap may grow between two collections, at least. Go's own measure is what lives:
// a small server under load would spend a fifth of its time on collecting little.
const serverHeadroom = 192 << 20

var headroomGiven sync.Once

// giveHeadroom lets the heap of this process grow by least bytes between two collections, or by twice what lives if that is
// more, but by no more than most. It is for the whole process, once, and does nothing where the environment says how to
// collect (GOGC, GOMEMLIMIT).
func giveHeadroom(least, most uint64) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	headroomGiven.Do(func() { adjustEach(headroom{least, most}) })
}

// headroom is by how many bytes a heap may grow between two collections.
type headroom struct{ least, most uint64 }

// adjustEach adjusts the collector after each collection, for good.
func adjustEach(room headroom) {
	debug.SetGCPercent(room.percentFor(liveHeap()))
	// What nobody refers to is found by the next collection; then it is time again.
	runtime.AddCleanup(&struct{ _ *byte }{}, adjustEach, room)
}

// liveHeap is how many bytes the last collection has left.
func liveHeap() uint64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if live[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return live[0].Value.Uint64()
}

// mostHeadroom is by how much a server's heap may grow between two collections, at most: a server of 50,000 nodes and a million allocations
// holds a gigabyte, and need not take two.
const mostHeadroom = 512 << 20

// percentFor is GOGC for a heap of which so much lives: it may grow by twice as much, within the headroom.
func (r headroom) percentFor(live uint64) int {
	const least = 4 << 20 // Go takes no heap for smaller than that
	live = max(live, least)
	return int(max(r.least, min(2*live, r.most)) * 100 / live) //nolint:gosec // bounded by the headroom
}
