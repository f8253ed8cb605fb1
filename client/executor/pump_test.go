package executor

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/client/logs"
)

// Output that comes while the files cannot be written is dropped and counted; the
// place where it is missing is marked; then all goes on. With and without splice.
func TestPumpDropsAndGoesOn(t *testing.T) {
	f := func(copies bool) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "logs")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		src := logs.Source{Dir: dir, Task: "a", Stream: logs.Stdout}
		out, err := logs.OpenWriter(src, 100, 8)
		if err != nil {
			t.Fatal(err)
		}
		fds := make([]int, 2)
		if err := unix.Pipe2(fds, unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		defer closeAll(fds)
		var dropped atomic.Int64
		p := &pump{out: out, dropped: &dropped, copies: copies}
		put := func(s string) {
			t.Helper()
			if _, err := unix.Write(fds[1], []byte(s)); err != nil {
				t.Fatal(err)
			}
			p.drain(uintptr(fds[0]))
		}
		put("12345678")
		away := dir + "-away"
		if err := os.Rename(dir, away); err != nil {
			t.Fatal(err)
		}
		put("lost")
		put("lost too")
		if err := os.Rename(away, dir); err != nil {
			t.Fatal(err)
		}
		put("and this") // the next try is not due yet
		p.failed = p.failed.Add(-retryWrite)
		put("abcdefghijk")
		p.note(p.failed, true)
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		err = logs.Read(t.Context(), src, logs.Options{}, func(c logs.Chunk) error {
			b.Write(c.Data)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		got := b.String()
		if !strings.HasPrefix(got, "12345678\n[nomadish: 20 bytes of output are missing here: open log: ") ||
			!strings.HasSuffix(got, "]\nabcdefghijk") || dropped.Load() != 20 {
			t.Fatalf("copies %v: %d dropped, got %q", copies, dropped.Load(), got)
		}
	}
	f(false)
	f(true)
}
