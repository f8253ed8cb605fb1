package fsm

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// seeds are entries of every type, the same in every run.
func seeds(f *testing.F) [][]byte {
	f.Helper()
	var out [][]byte
	drawn := rapid.Custom(func(t *rapid.T) []byte {
		typ, payload := (&script{t: t}).entry()
		data, err := Encode(typ, payload)
		if err != nil {
			t.Fatal(err)
		}
		return data
	})
	for i := range 64 {
		out = append(out, drawn.Example(i))
	}
	for _, typ := range structs.LogTypes() {
		out = append(out, []byte{byte(typ), 0x80})
	}
	return out
}

func FuzzDecodeLogEntry(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		typ, payload, err := Decode(data)
		if err != nil {
			return
		}
		if _, err := Encode(typ, payload); err != nil {
			t.Fatalf("what was decoded cannot be encoded: %v", err)
		}
	})
}

// Whatever can be decoded can be applied: with an answer, without a panic, and with
// all that is derived still right.
func FuzzApply(f *testing.F) {
	all := seeds(f)
	for i, s := range all {
		f.Add(s, all[(i+7)%len(all)], all[(i+31)%len(all)])
	}
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		store, writer := state.New(state.Options{HistoryMax: 5, JobVersions: 2})
		for i, data := range [][]byte{a, b, c, a} {
			typ, payload, err := Decode(data)
			if err != nil {
				continue
			}
			_ = writer.Apply(uint64(i+1), typ, payload) // a refusal is fine, a panic is not
			if d := state.Differences(store.Snapshot()); len(d) > 0 {
				t.Fatalf("entry %d: %v", i, d)
			}
		}
		if got := store.LatestIndex(); got > 4 {
			t.Fatalf("index %d after 4 entries", got)
		}
	})
}

func FuzzRestore(f *testing.F) {
	r := newReplica()
	f.Add(dump(f, r))
	for i, s := range seeds(f) {
		r.apply(uint64(i+1), s)
	}
	f.Add(dump(f, r))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		// Whoever can write a snapshot can write its checksum as well.
		if len(data) > 4 {
			body := data[:len(data)-4]
			data = binary.BigEndian.AppendUint32(bytes.Clone(body), crc32.Checksum(body, castagnoli))
		}
		r := newReplica()
		if r.restore(data) != nil {
			if r.store.LatestIndex() != 0 {
				t.Fatal("a refused snapshot changed the state")
			}
			return
		}
		if len(dump(t, r)) == 0 {
			t.Fatal("what was restored cannot be written again")
		}
	})
}
