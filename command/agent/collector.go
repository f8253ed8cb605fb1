package agent

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// serverHeadroom is by how much a server's heap may grow between two collections, at least. Go's own measure is what lives:
// a small server under load would spend a fifth of its time on collecting little.
const serverHeadroom = 192 << 20

var headroomGiven sync.Once

// giveHeadroom lets the heap of this process grow by least bytes between two collections, or by twice what lives if that is
// more, but by no more than most. It is for the whole process, once, and does nothing where the environment states how to
// collect (GOGC, GOMEMLIMIT).
func giveHeadroom(least, most uint64) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	headroomGiven.Do(func() {
		room := headroom{least, most}
		adjustEach(room)
		(&idler{room: room}).again()
	})
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
func liveHeap() uint64 { return measured("/gc/heap/live:bytes") }

// measured is a metric of the runtime that is a number; 0: it does not know it.
func measured(name string) uint64 {
	one := []metrics.Sample{{Name: name}}
	metrics.Read(one)
	if one[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return one[0].Value.Uint64()
}

// What counts as an idle process, and when it is worth a collection there.
const (
	idleLook = time.Second
	idleRate = 4 << 20 // bytes allocated from one look to the next, at most: heartbeats
	idlePart = 8       // of the headroom is used up, or of what lives if that is more: a collection costs as much as lives
)

// idler collects while there is nothing else to do, so that the next burst of work finds all the headroom: a collection in the
// middle of one takes a third of the processors of a large server, for half a second. No goroutine waits for it.
type idler struct {
	room headroom
	last uint64 // what was allocated up to the last look
	calm bool   // little was from the look before to that one
}

func (i *idler) again() { time.AfterFunc(idleLook, i.look) }

func (i *idler) look() {
	defer i.again()
	live := liveHeap()
	// What the last collection found dead is swept at once where little is done, and counts no more.
	grown := max(measured("/memory/classes/heap/objects:bytes"), live) - live
	if i.due(measured("/gc/heap/allocs:bytes"), live, grown) {
		runtime.GC()
	}
}

// due reports whether it is time to collect: so much has been allocated since the process began, so much lived at the last
// collection, and by so much the heap has grown since. Twice in a row little was allocated, so that it is no pause within a burst.
func (i *idler) due(allocated, live, grown uint64) bool {
	was := i.calm
	i.calm = allocated-i.last <= idleRate
	i.last = allocated
	return was && i.calm && grown >= max(i.room.of(live), live)/idlePart
}

// mostHeadroom is by how much a server's heap may grow between two collections, at most: a server of 50,000 nodes and a million allocations
// holds a gigabyte, and need not take two.
const mostHeadroom = 512 << 20

// percentFor is GOGC for a heap of which so much lives: it may grow by twice as much, within the headroom.
func (r headroom) percentFor(live uint64) int {
	const least = 4 << 20 // Go takes no heap for smaller than that
	live = max(live, least)
	return int(r.of(live) * 100 / live) // bounded by the headroom
}

// of is by how many bytes a heap of which so much lives may grow.
func (r headroom) of(live uint64) uint64 { return max(r.least, min(2*live, r.most)) }
