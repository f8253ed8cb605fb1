package simulation

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"

	"github.com/hashicorp/go-msgpack/v2/codec"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// changed returns a hash of what an entry changed, as the feed reports it, and notes what
// allocations these were. It is of all that the feed reports, now and then, and else of what changed and
// to what: replicas that differ in more than that differ in the hashes of their states, later.
func (c *checks) changed(r *replica, index uint64) uint64 {
	c.touched = c.touched[:0]
	changes, found, err := r.store.Feed(index - 1).Poll()
	if err != nil {
		c.fail("replica %d: the feed has lost entry %d, which was just applied: %v", r.id, index, err)
	}
	if !found || changes.Index != index { // it changed nothing that the feed reports
		return 0
	}
	c.reported = c.reported[:0]
	for i := range changes.Items {
		change := &changes.Items[i]
		if index%wholeEvery != 0 {
			c.reported = brief(c.reported, change)
		} else if c.reported, err = c.whole(c.reported, change.New); err != nil {
			c.fail("entry %d: what it changed cannot be encoded: %v", index, err)
		}
		if change.Kind != state.KindAlloc {
			continue
		}
		for _, v := range []any{change.Old, change.New} {
			if a, _ := v.(*state.AllocRow); a != nil {
				c.onNode[a.NodeID()] = max(c.onNode[a.NodeID()], index) // a replica that is behind applies older entries
				c.touched = append(c.touched, a.JobID())
			}
		}
	}
	sum := sha256.Sum256(c.reported)
	return binary.BigEndian.Uint64(sum[:])
}

// whole appends all that a change says.
func (c *checks) whole(to []byte, v any) ([]byte, error) {
	if a, ok := v.(*state.AllocRow); ok {
		v = a.Whole()
	}
	c.encoder.ResetBytes(&c.encoded)
	err := c.encoder.Encode(v)
	return append(to, c.encoded...), err
}

// brief appends what was changed, and the little that most entries change of it.
func brief(to []byte, change *state.Change) []byte {
	to = words(numbers(to, uint64(change.Kind)), change.Key, change.Type)
	v := change.New
	if a, ok := v.(*state.AllocRow); ok {
		v = a.Brief()
	}
	switch now := v.(type) {
	case *structs.Allocation:
		to = numbers(to, now.ModifyIndex, now.AllocModifyIndex)
		to = words(to, now.NodeID, now.DesiredStatus, now.ClientStatus, now.PreemptedByAllocation, now.NextAllocation)
	case *structs.Evaluation:
		to = words(numbers(to, now.ModifyIndex, uint64(now.WaitUntil.UnixNano())), now.Status, now.BlockedEval) // a bit pattern
	case *structs.Node:
		to = words(numbers(to, now.ModifyIndex, uint64(len(now.Events))), now.Status, now.SchedulingEligibility)
	case *structs.Job:
		to = words(numbers(to, now.ModifyIndex, now.Version), now.Status, strconv.FormatBool(now.Stop))
	}
	return to
}

func numbers(to []byte, all ...uint64) []byte {
	for _, n := range all {
		to = binary.LittleEndian.AppendUint64(to, n)
	}
	return to
}

// words appends strings so that it can be told where each ends.
func words(to []byte, all ...string) []byte {
	for _, s := range all {
		to = append(binary.AppendUvarint(to, uint64(len(s))), s...)
	}
	return to
}

// canonical encodes equal values alike.
var canonical = func() *codec.MsgpackHandle {
	h := &codec.MsgpackHandle{}
	h.Canonical = true
	return h
}()
