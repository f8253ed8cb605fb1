package logs

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// spliceMax is how much one system call moves at most: the size of the pipes
// that tasks write to.
const spliceMax = 1 << 20

// Writer appends to the files of one stream and rotates them. It keeps no bytes
// in memory: what a call has taken is in the file when the call returns, so a
// writer that dies can be followed by another one on the same files. There must
// be only one writer of a stream at a time. Not safe for concurrent use.
type Writer struct {
	src      Source
	maxFiles int
	maxBytes int64

	file  *os.File // the file being written
	index int      // its number
	size  int64    // its size, which is where the next byte goes
}

// OpenWriter goes on where the stream's files end, or begins the first one.
// maxFiles and maxBytes (per file) must be at least 1.
func OpenWriter(src Source, maxFiles int, maxBytes int64) (*Writer, error) {
	if err := src.Validate(); err != nil {
		return nil, err
	}
	if maxFiles < 1 || maxBytes < 1 {
		return nil, fmt.Errorf("log limits: %d files of %d bytes; both must be at least 1", maxFiles, maxBytes)
	}
	w := &Writer{src: src, maxFiles: maxFiles, maxBytes: maxBytes}
	files, err := src.Files()
	if err != nil {
		return nil, err
	}
	if len(files) > 0 {
		w.index = files[len(files)-1].Index
	}
	if err := w.open(w.index); err != nil {
		return nil, err
	}
	return w, nil
}

// open makes the file of that number the one being written.
func (w *Writer) open(index int) error {
	// Not O_APPEND: splice(2) refuses it.
	f, err := os.OpenFile(w.src.Path(index), os.O_CREATE|os.O_WRONLY|unix.O_NOFOLLOW, 0o640)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(fmt.Errorf("open log: %w", err), f.Close())
	}
	if w.file != nil {
		// Nothing is buffered, so a failing close loses nothing that a write has
		// not already complained about.
		_ = w.file.Close()
	}
	w.file, w.index, w.size = f, index, info.Size()
	return nil
}

// room rotates if the file is full and returns how much still fits into it. It
// rotates only when there is something to write, so the last file of an ended
// task is never empty without need.
func (w *Writer) room() (int64, error) {
	if w.file == nil {
		return 0, os.ErrClosed
	}
	for w.size >= w.maxBytes {
		if err := w.open(w.index + 1); err != nil {
			return 0, err
		}
		w.prune()
	}
	return w.maxBytes - w.size, nil
}

// prune deletes the files that are too many. Failing to is not worth losing
// output for: the next rotation tries again.
func (w *Writer) prune() {
	files, err := w.src.Files()
	if err != nil {
		return
	}
	for _, f := range files {
		if f.Index > w.index-w.maxFiles {
			return
		}
		_ = os.Remove(w.src.Path(f.Index))
	}
}

// Write appends p. On an error n bytes of it have been written.
func (w *Writer) Write(p []byte) (n int, err error) {
	for n < len(p) {
		room, err := w.room()
		if err != nil {
			return n, err
		}
		part := p[n:min(len(p), n+int(min(room, spliceMax)))]
		k, err := w.file.WriteAt(part, w.size)
		n += k
		w.size += int64(k)
		if err != nil {
			return n, fmt.Errorf("write log: %w", err)
		}
	}
	return n, nil
}

// Splice moves what the pipe fd contains, at most a megabyte and at most to the end
// of the current file, without a copy in this process: a byte is either still in
// the pipe or already in the file, whenever the process dies. It never waits for
// the pipe. 0 and nil mean that all writers have closed it; unix.EAGAIN that it
// is empty; unix.EINVAL that the file system cannot splice.
func (w *Writer) Splice(fd int) (int, error) {
	room, err := w.room()
	if err != nil {
		return 0, err
	}
	raw, err := w.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	var n int64
	var serr error
	cerr := raw.Control(func(out uintptr) {
		for {
			off := w.size
			n, serr = unix.Splice(fd, nil, int(out), &off, int(min(room, spliceMax)), unix.SPLICE_F_NONBLOCK|unix.SPLICE_F_MOVE)
			if !errors.Is(serr, unix.EINTR) {
				return
			}
		}
	})
	if cerr != nil {
		return 0, cerr
	}
	if serr != nil {
		return 0, serr
	}
	w.size += n
	return int(n), nil
}

// Close closes the current file. The writer is of no use afterwards.
func (w *Writer) Close() error {
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file = nil
	return err
}
