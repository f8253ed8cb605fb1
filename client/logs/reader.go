package logs

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// The origins of an offset.
const (
	// OriginStart counts from the first byte that is still kept.
	OriginStart = "start"
	// OriginEnd counts backwards from the last byte written so far.
	OriginEnd = "end"
)

// chunkSize is the most bytes of one chunk.
const chunkSize = 64 << 10

// Chunk is a piece of a stream.
type Chunk struct {
	// File is the name of the file (without directory) that contains the piece.
	File string
	// Offset is where in the file the piece begins, in bytes.
	Offset int64
	// Data is valid until the next call of Next.
	Data []byte
}

// Reader reads a stream across its files, from a place to wherever the stream
// ends at the moment. Not safe for concurrent use.
type Reader struct {
	src  Source
	file *os.File // being read, or nil
	idx  int      // number of file; while file is nil: the lowest that may come next
	off  int64    // next byte in file
	// sealed: a later file was seen after file's end was reached once, so file will
	// not grow any more.
	sealed bool
	buf    []byte
}

// OpenReader places a reader offset bytes after the start (OriginStart, or an
// empty origin) or before the end (OriginEnd) of all files there are, counted
// over the files as if they were one. An offset beyond them means the end, or
// the start. A stream without files yet is not an error: Next returns io.EOF until
// there is something.
func OpenReader(src Source, origin string, offset int64) (*Reader, error) {
	if err := src.Validate(); err != nil {
		return nil, err
	}
	if offset < 0 {
		return nil, fmt.Errorf("log offset %d: must not be negative", offset)
	}
	files, err := src.Files()
	if err != nil {
		return nil, err
	}
	var total int64
	for _, f := range files {
		total += f.Size
	}
	switch origin {
	case OriginStart, "":
		offset = min(offset, total)
	case OriginEnd:
		offset = total - min(offset, total)
	default:
		return nil, fmt.Errorf("log origin %q: must be %q or %q", origin, OriginStart, OriginEnd)
	}
	r := &Reader{src: src}
	for i, f := range files {
		r.idx, r.off = f.Index, offset
		// The end of a file is the start of the next one; at the very end stay in
		// the last file, which may still grow.
		if offset < f.Size || i == len(files)-1 {
			break
		}
		offset -= f.Size
	}
	return r, nil
}

// Next returns the next piece. io.EOF means that there is no more at the moment;
// Next may be called again later. A reader that is so slow that files are
// deleted before it came to them goes on with the oldest that is left.
func (r *Reader) Next() (Chunk, error) {
	if r.buf == nil {
		r.buf = make([]byte, chunkSize)
	}
	for {
		if r.file == nil {
			if err := r.open(); err != nil {
				return Chunk{}, err
			}
		}
		n, err := r.file.ReadAt(r.buf, r.off)
		if n > 0 {
			c := Chunk{File: r.src.Name(r.idx), Offset: r.off, Data: r.buf[:n]}
			r.off += int64(n)
			return c, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return Chunk{}, fmt.Errorf("read log: %w", err)
		}
		if r.sealed {
			if err := r.Close(); err != nil {
				return Chunk{}, err
			}
			r.idx, r.off, r.sealed = r.idx+1, 0, false
			continue
		}
		later, err := r.hasLater()
		if err != nil {
			return Chunk{}, err
		}
		if !later {
			return Chunk{}, io.EOF
		}
		// The writer may have added to this file between our reading its end and
		// its opening the next one: read once more.
		r.sealed = true
	}
}

// open opens the file to read: the first of number idx or more.
func (r *Reader) open() error {
	for {
		f, err := os.Open(r.src.Path(r.idx))
		if err == nil {
			r.file = f
			return nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("open log: %w", err)
		}
		files, err := r.src.Files()
		if err != nil {
			return err
		}
		next := -1
		for _, f := range files {
			if f.Index >= r.idx {
				next = f.Index
				break
			}
		}
		if next < 0 {
			return io.EOF
		}
		if next != r.idx {
			r.idx, r.off = next, 0
		}
	}
}

// hasLater reports whether the stream has a file after the one being read.
func (r *Reader) hasLater() (bool, error) {
	_, err := os.Lstat(r.src.Path(r.idx + 1))
	if err == nil {
		return true, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("list logs: %w", err)
	}
	files, err := r.src.Files()
	if err != nil || len(files) == 0 {
		return false, err
	}
	return files[len(files)-1].Index > r.idx, nil
}

// Close closes the file being read. Next may still be called.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	if err != nil {
		return fmt.Errorf("close log: %w", err)
	}
	return nil
}
