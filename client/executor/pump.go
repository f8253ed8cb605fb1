package executor

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/client/logs"
)

const (
	// pipeSize is how much a task may write while nobody empties its pipe. It is
	// the most that an unprivileged process may request by default; if even that
	// is refused the kernel's 64 KiB stay.
	pipeSize = 1 << 20
	// retryWrite is how long output is thrown away after a file could not be
	// written, before the next try.
	retryWrite = time.Second
)

// makeFifo makes the FIFO of one stream, for the task's user so that the task
// may open /dev/stdout. One that is there already, with output in it, stays.
func makeFifo(path string, uid, gid int) error {
	err := unix.Mkfifo(path, 0o600)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("make FIFO: %w", err)
	}
	if err := os.Chown(path, uid, gid); err != nil && os.Geteuid() == 0 {
		return fmt.Errorf("make FIFO: %w", err)
	}
	return nil
}

// pump moves one stream of one task from its FIFO into its files, on a goroutine
// of its own, until all writers have closed the FIFO or finish is called.
type pump struct {
	pipe *os.File // reading end
	raw  syscall.RawConn
	out  *logs.Writer

	dropped *atomic.Int64 // the task's count of lost bytes
	lost    int64         // lost since the last note in the file; only the goroutine's
	why     error         // what the last write failed with
	failed  time.Time     // when; zero while writing works
	copies  bool          // the file system cannot splice
	buf     []byte        // for copying and throwing away; made when first needed

	done chan struct{} // closed when the goroutine has ended
}

// openPump opens the reading end and the files and begins to move. The writing
// end must be open already, or have output in it: a FIFO that has neither is at its end.
func openPump(fifo string, out *logs.Writer, dropped *atomic.Int64) (*pump, error) {
	pipe, err := os.OpenFile(fifo, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open FIFO: %w", err)
	}
	raw, err := pipe.SyscallConn()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open FIFO: %w", err), pipe.Close())
	}
	p := &pump{pipe: pipe, raw: raw, out: out, dropped: dropped, done: make(chan struct{})}
	_ = raw.Control(func(fd uintptr) {
		_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize)
	})
	go p.run()
	return p, nil
}

func (p *pump) run() {
	defer close(p.done)
	defer func() {
		p.note(time.Now(), true)
		// Nothing is buffered in either: there is nothing left to lose.
		_ = p.pipe.Close()
		_ = p.out.Close()
	}()
	for {
		var n int
		var err error
		rerr := p.raw.Read(func(fd uintptr) bool {
			n, err = p.move(int(fd))
			return !errors.Is(err, unix.EAGAIN)
		})
		if rerr != nil {
			// finish has set the deadline.
			_ = p.raw.Control(p.drain)
			return
		}
		if err != nil || n == 0 {
			return
		}
	}
}

// finish makes the goroutine take what is in the FIFO now and end, and waits
// until it has. Called after the task's processes have ended.
func (p *pump) finish() {
	_ = p.pipe.SetReadDeadline(time.Unix(1, 0))
	<-p.done
}

// drain takes what the FIFO contains now: no more, so that a process that has
// escaped and writes on cannot keep the task from ending.
func (p *pump) drain(fd uintptr) {
	left, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
	if err != nil {
		left = pipeSize
	}
	for left > 0 {
		n, err := p.move(int(fd))
		if err != nil || n == 0 {
			return
		}
		left -= n
	}
}

// move takes some of what the FIFO contains, into the file or, while that cannot be
// written, into nothing. It returns how much it took, 0 at the end, or EAGAIN.
func (p *pump) move(fd int) (int, error) {
	now := time.Now()
	if !p.failed.IsZero() {
		if now.Sub(p.failed) < retryWrite || !p.note(now, false) {
			return p.discard(fd)
		}
	}
	if p.copies {
		return p.copy(fd, now)
	}
	n, err := p.out.Splice(fd)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, unix.EAGAIN):
		return 0, unix.EAGAIN
	case errors.Is(err, unix.EINVAL):
		p.copies = true
		return p.copy(fd, now)
	}
	p.failed, p.why = now, err
	return p.discard(fd)
}

// copy is move for file systems without splice: what was read and not yet
// written is lost if the executor is killed in between.
func (p *pump) copy(fd int, now time.Time) (int, error) {
	n, err := p.read(fd)
	if err != nil || n == 0 {
		return n, err
	}
	k, err := p.out.Write(p.buf[:n])
	if err != nil {
		p.failed, p.why = now, err
		p.drop(n - k)
	}
	return n, nil
}

func (p *pump) discard(fd int) (int, error) {
	n, err := p.read(fd)
	p.drop(n)
	return n, err
}

func (p *pump) drop(n int) {
	p.lost += int64(n)
	p.dropped.Add(int64(n))
}

// read fills buf from the FIFO.
func (p *pump) read(fd int) (int, error) {
	if p.buf == nil {
		p.buf = make([]byte, 64<<10)
	}
	for {
		n, err := unix.Read(fd, p.buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return max(n, 0), err
	}
}

// note writes into the file what was lost, if anything was, and reports whether the
// file can be written again.
func (p *pump) note(now time.Time, last bool) bool {
	if p.failed.IsZero() || (last && p.lost == 0) {
		return true
	}
	text := fmt.Sprintf("\n[nomadish: %d bytes of output are missing here: %v]\n", p.lost, p.why)
	if p.lost == 0 {
		text = ""
	}
	if _, err := p.out.Write([]byte(text)); err != nil {
		p.failed, p.why = now, err
		return false
	}
	p.failed, p.why, p.lost = time.Time{}, nil, 0
	return true
}
