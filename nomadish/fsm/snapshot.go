package fsm

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs/wire"
)

// A snapshot is: the magic, a header record, then a record for every row, then an
// end record, then the CRC-32C of all before it. A record is a 4-byte length and
// that much msgpack. The end record and the checksum tell a whole snapshot from a
// torn one.
const (
	magic   = "nomadish-snapshot\n"
	version = 1
	// maxRow bounds a row's size, so that a damaged length cannot eat all memory.
	maxRow = 64 << 20
)

// header is the first record.
type header struct {
	Version int
	Index   uint64
}

// row is every other record; of the last one Table is empty and Count says how many
// came before it.
type row struct {
	Table string
	Data  []byte
	Count int
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func write(to io.Writer, s *state.Snapshot) error {
	sum := crc32.New(castagnoli)
	w := bufio.NewWriterSize(io.MultiWriter(to, sum), 1<<20)
	if _, err := w.WriteString(magic); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	if err := wire.WriteFrame(w, &header{Version: version, Index: s.Index()}); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	count := 0
	err := s.Export(func(table string, r any) error {
		data, err := wire.Encode(r)
		if err != nil {
			return err
		}
		count++
		return wire.WriteFrame(w, &row{Table: table, Data: data})
	})
	if err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	if err := wire.WriteFrame(w, &row{Count: count}); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	if err := binary.Write(to, binary.BigEndian, sum.Sum32()); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// summing hashes what is read.
type summing struct {
	r   io.Reader
	sum hash.Hash32
}

func (s *summing) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	_, _ = s.sum.Write(p[:n]) // never fails
	return n, err
}

func restore(from io.Reader, w *state.Writer) error {
	buffered := bufio.NewReaderSize(from, 1<<20)
	r := &summing{r: buffered, sum: crc32.New(castagnoli)}
	got := make([]byte, len(magic))
	if _, err := io.ReadFull(r, got); err != nil || string(got) != magic {
		return errors.New("restore: this is not a nomadish snapshot")
	}
	var h header
	if err := wire.ReadFrame(r, maxRow, &h); err != nil {
		return fmt.Errorf("restore: read the header: %w", err)
	}
	if h.Version != version {
		return fmt.Errorf("restore: the snapshot's format is %d, this version reads %d: use the version that wrote it", h.Version, version)
	}
	in := w.Import()
	for count := 0; ; count++ {
		var next row
		if err := wire.ReadFrame(r, maxRow, &next); err != nil {
			return fmt.Errorf("restore: row %d: %w: the snapshot is torn or damaged; use another", count, err)
		}
		if next.Table == "" {
			if next.Count != count {
				return fmt.Errorf("restore: %d rows of %d: the snapshot is damaged; use another", count, next.Count)
			}
			break
		}
		value, err := state.NewRow(next.Table)
		if err != nil {
			return fmt.Errorf("restore: row %d: %w", count, err)
		}
		if err := wire.Decode(next.Data, value); err != nil {
			return fmt.Errorf("restore: row %d of %s: %w", count, next.Table, err)
		}
		if err := in.Add(next.Table, value); err != nil {
			return err
		}
	}
	want := r.sum.Sum32()
	var sum uint32
	if err := binary.Read(buffered, binary.BigEndian, &sum); err != nil || sum != want {
		return errors.New("restore: the checksum does not match: the snapshot is torn or damaged; use another")
	}
	w.Commit(in, h.Index)
	return nil
}
