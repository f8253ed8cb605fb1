package fsm

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"runtime"
	"sync"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/nomadish/state"
)

// A snapshot is: the magic, a header record, then a record for every row, then an
// end record, then the CRC-32C of all before it. A record is a 4-byte length and
// that much msgpack. The end record and the checksum distinguish a whole snapshot from a
// torn one.
const (
	magic = "nomadish-snapshot\n"
	// version is raised when an older server could read what is written, and would get it
	// wrong. A table or field more does not: see docs/adr/0006.
	version = 1
	// maxRow bounds a row's size, so that a damaged length cannot eat all memory.
	maxRow = 64 << 20
)

// Header is a snapshot's first record.
type Header struct {
	Version int
	Index   uint64 // of the last log entry that the state holds
	// Restored is state.Snapshot's Restored.
	Restored uint64 `codec:",omitempty"`
}

// row is every other record; of the last one Table is empty and Count states how many
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
	if err := writeHeader(w, &Header{Version: version, Index: s.Index(), Restored: s.Restored()}); err != nil {
		return err
	}
	rows := &outgoing{to: w}
	err := s.Export(rows.add)
	if err = cmp.Or(err, rows.flush(), rows.wait()); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	if err := codec.WriteFrame(w, &row{Count: rows.count}); err != nil {
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

// maxOutgoing bounds the rows that are encoded at once. They are fewer where they are large, and at first, as it is not known
// how large they are.
const maxOutgoing, firstOutgoing = 256, 8

// outgoing are rows on their way into a snapshot. They are encoded on all processors, and written while the next ones are
// encoded: it is most of the work.
type outgoing struct {
	to      io.Writer
	all     []encoded
	written chan error // reports those before; nil: nothing is being written
	failed  error      // of what was written
	count   int
	table   string // of the last one
	most    int    // rows at once, by the largest of those before
}

type encoded struct {
	table string
	value any
	frame bytes.Buffer
	err   error
}

// add adds a row; the error that it returns may be of rows before.
func (o *outgoing) add(table string, value any) error {
	if o.table != table { // its rows are of another size
		if err := o.flush(); err != nil {
			return err
		}
		o.table, o.most = table, firstOutgoing
	}
	o.count++
	o.all = append(o.all, encoded{table: table, value: value})
	if len(o.all) < o.most {
		return nil
	}
	return o.flush()
}

// flush encodes what was added and begins to write it.
func (o *outgoing) flush() error {
	batch := o.all
	o.all = nil
	onAll(len(batch), func(i int) {
		e := &batch[i]
		var data []byte
		if data, e.err = codec.EncodeRow(e.value); e.err == nil {
			e.err = codec.WriteFrame(&e.frame, &row{Table: e.table, Data: data})
		}
	})
	largest := 1
	for i := range batch {
		largest = max(largest, batch[i].frame.Len())
	}
	o.most = min(max(maxRowBytes/largest, 1), maxOutgoing)
	if err := o.wait(); err != nil {
		return err
	}
	written := make(chan error, 1)
	o.written = written
	go func() { written <- writeAll(o.to, batch) }() // wait waits for it
	return nil
}

func writeAll(to io.Writer, batch []encoded) error {
	for i := range batch {
		if batch[i].err != nil {
			return batch[i].err
		}
		if _, err := to.Write(batch[i].frame.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// wait waits until what was begun is written.
func (o *outgoing) wait() error {
	if o.written != nil {
		o.failed = <-o.written
		o.written = nil
	}
	return o.failed
}

// onAll calls do for 0 to n-1, on all processors.
func onAll(n int, do func(i int)) {
	var wg sync.WaitGroup
	many := min(runtime.GOMAXPROCS(0), n)
	for part := range many {
		wg.Go(func() {
			for i := part; i < n; i += many {
				do(i)
			}
		})
	}
	wg.Wait()
}

func writeHeader(w io.Writer, h *Header) error {
	if _, err := io.WriteString(w, magic); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	if err := codec.WriteFrame(w, h); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// summing hashes and counts what is read.
type summing struct {
	r   io.Reader
	sum hash.Hash32
	n   int64
}

func (s *summing) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.n += int64(n)
	_, _ = s.sum.Write(p[:n]) // never fails
	return n, err
}

func readHeader(r io.Reader) (h Header, err error) {
	got := make([]byte, len(magic))
	if _, err := io.ReadFull(r, got); err != nil || string(got) != magic {
		return h, errors.New("this is not a nomadish snapshot")
	}
	if err := codec.ReadFrame(r, maxRow, &h); err != nil {
		return h, fmt.Errorf("read the header: %w", err)
	}
	if h.Version > version {
		return h, fmt.Errorf("the snapshot's format is %d, and this version reads up to %d: a newer version wrote it; use that, or upgrade this server",
			h.Version, version)
	}
	if h.Version < 1 {
		return h, fmt.Errorf("the snapshot's format is %d, which there never was: it is damaged; use another", h.Version)
	}
	return h, nil
}

// Bounds of the rows that are decoded at once.
const (
	maxRows     = 1024
	maxRowBytes = 8 << 20
)

// rows are some that follow each other, as they were read. They are decoded on all processors: that is most of the work of
// reading a snapshot.
type rows struct {
	first int // how many came before
	bytes int
	all   []decoded
}

type decoded struct {
	row
	size  int // in the snapshot
	value any
	err   error
}

// add adds a row and reports whether it is time to give them on.
func (r *rows) add(next row, size int) bool {
	r.all = append(r.all, decoded{row: next, size: size})
	r.bytes += size
	return len(r.all) == maxRows || r.bytes >= maxRowBytes
}

// give decodes the rows and passes those that a state may hold to each, in their order.
func (r *rows) give(each func(table string, row any, size int) error) error {
	onAll(len(r.all), func(i int) {
		d := &r.all[i]
		if d.value, d.err = state.NewRow(d.Table); d.err == nil {
			d.err = codec.Decode(d.Data, d.value)
		}
	})
	for i := range r.all {
		d := &r.all[i]
		if d.err == nil {
			d.err = state.CheckRow(d.Table, d.value)
		}
		if d.err != nil {
			return fmt.Errorf("row %d of %s: %w", r.first+i, d.Table, d.err)
		}
		if err := each(d.Table, d.value, d.size); err != nil {
			return err
		}
	}
	r.first += len(r.all)
	clear(r.all)
	r.all, r.bytes = r.all[:0], 0
	return nil
}

// Read reads a whole snapshot row by row, each of which is one that a state may hold, with
// its size in bytes. Only when it returns no error is the snapshot whole. A row belongs to
// whom it was given to.
func Read(from io.Reader, each func(table string, row any, size int) error) (Header, error) {
	buffered := bufio.NewReaderSize(from, 1<<20)
	r := &summing{r: buffered, sum: crc32.New(castagnoli)}
	h, err := readHeader(r)
	if err != nil {
		return h, err
	}
	rows := &rows{}
	for count := 0; ; count++ {
		before := r.n
		var next row
		if err := codec.ReadFrame(r, maxRow, &next); err != nil {
			torn := fmt.Errorf("row %d: %w: the snapshot is torn or damaged; use another", count, err)
			return h, cmp.Or(rows.give(each), torn) // what is wrong first
		}
		if next.Table == "" {
			if err := rows.give(each); err != nil {
				return h, err
			}
			if next.Count != count {
				return h, fmt.Errorf("%d rows of %d: the snapshot is damaged; use another", count, next.Count)
			}
			break
		}
		if rows.add(next, int(r.n-before)) {
			if err := rows.give(each); err != nil {
				return h, err
			}
		}
	}
	want := r.sum.Sum32()
	var sum uint32
	if err := binary.Read(buffered, binary.BigEndian, &sum); err != nil || sum != want {
		return h, errors.New("the checksum does not match: the snapshot is torn or damaged; use another")
	}
	if _, err := buffered.ReadByte(); !errors.Is(err, io.EOF) {
		return h, errors.New("something follows the snapshot's end: it is damaged; use another")
	}
	return h, nil
}

func restore(from io.Reader, w *state.Writer) error {
	in := w.Import()
	h, err := Read(from, func(table string, row any, _ int) error { return in.Add(table, row) })
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	in.Restored = h.Restored
	w.Commit(in, h.Index)
	return nil
}

// Move copies a snapshot of size bytes that Read has found whole as one of the same state
// at a later index, at which it takes the place of what was there. It returns the reader of
// the copy and its size in bytes.
func Move(from io.Reader, size int64, index uint64) (io.Reader, int64, error) {
	r := &summing{r: from, sum: crc32.New(castagnoli)}
	h, err := readHeader(r)
	if err != nil {
		return nil, 0, fmt.Errorf("restore: %w", err)
	}
	if h.Index > index {
		return nil, 0, fmt.Errorf("restore: the snapshot is of index %d, after %d", h.Index, index)
	}
	h.Index, h.Restored = index, index
	out := &moved{sum: crc32.New(castagnoli), from: from, rest: size - r.n - crc32.Size}
	if out.rest < 0 {
		return nil, 0, errors.New("restore: the snapshot is torn; use another")
	}
	if err := writeHeader(out, &h); err != nil {
		return nil, 0, err
	}
	return out, int64(len(out.head)) + out.rest + crc32.Size, nil
}

// moved is a snapshot with another header.
type moved struct {
	head []byte    // what comes first: the header, later the checksum
	from io.Reader // then so much of this
	rest int64
	sum  hash.Hash32
	done bool // the checksum is in head, or was read
}

// Write takes the header.
func (m *moved) Write(p []byte) (int, error) {
	m.head = append(m.head, p...)
	return len(p), nil
}

// Read returns the copy.
func (m *moved) Read(p []byte) (int, error) {
	if len(m.head) == 0 && m.rest == 0 {
		if m.done {
			return 0, io.EOF
		}
		m.done = true
		m.head = binary.BigEndian.AppendUint32(nil, m.sum.Sum32())
	}
	if len(m.head) > 0 {
		n := copy(p, m.head)
		if !m.done {
			_, _ = m.sum.Write(p[:n]) // never fails
		}
		m.head = m.head[n:]
		return n, nil
	}
	n, err := m.from.Read(p[:min(int64(len(p)), m.rest)])
	_, _ = m.sum.Write(p[:n]) // as above
	m.rest -= int64(n)
	if errors.Is(err, io.EOF) {
		err = nil
		if m.rest > 0 && n == 0 {
			err = io.ErrUnexpectedEOF
		}
	}
	return n, err
}
