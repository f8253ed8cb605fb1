package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func source(t testing.TB) Source {
	return Source{Dir: t.TempDir(), Task: "web.1", Stream: Stdout}
}

func open(t testing.TB, src Source, files int, size int64) *Writer {
	t.Helper()
	w, err := OpenWriter(src, files, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func put(t testing.TB, w *Writer, s string) {
	t.Helper()
	if n, err := w.Write([]byte(s)); err != nil || n != len(s) {
		t.Fatalf("write: %d, %v", n, err)
	}
}

func readAll(t testing.TB, src Source, origin string, offset int64) string {
	t.Helper()
	var b bytes.Buffer
	err := Read(t.Context(), src, Options{Origin: origin, Offset: offset}, func(c Chunk) error {
		b.Write(c.Data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFilesIgnoresOthers(t *testing.T) {
	src := source(t)
	for _, name := range []string{"web.1.stdout.2", "web.1.stdout.10", "web.1.stderr.3", "web.stdout.1", "web.1.stdout.x", "web.1.stdout.07", "web.1.stdout.-1"} {
		if err := os.WriteFile(filepath.Join(src.Dir, name), []byte("12"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := src.Files()
	if err != nil || fmt.Sprint(files) != "[{2 2} {10 2}]" {
		t.Fatalf("files: %v, %v", files, err)
	}
}

func TestOffsets(t *testing.T) {
	src := source(t)
	w := open(t, src, 3, 4)
	put(t, w, "0123456789abcdefg") // 0123 and 4567 are rotated away; 89ab cdef g stay
	f := func(origin string, offset int64, want string) {
		t.Helper()
		if got := readAll(t, src, origin, offset); got != want {
			t.Errorf("%s+%d: got %q, want %q", origin, offset, got, want)
		}
	}
	f(OriginStart, 0, "89abcdefg")
	f("", 3, "bcdefg")
	f(OriginStart, 4, "cdefg")
	f(OriginStart, 8, "g")
	f(OriginStart, 9, "")
	f(OriginStart, 1000, "")
	f(OriginEnd, 0, "")
	f(OriginEnd, 1, "g")
	f(OriginEnd, 6, "bcdefg")
	f(OriginEnd, 1000, "89abcdefg")

	bad := func(src Source, opts Options) {
		t.Helper()
		if err := Read(t.Context(), src, opts, func(Chunk) error { return nil }); err == nil {
			t.Errorf("%+v %+v: accepted", src, opts)
		}
	}
	bad(src, Options{Origin: "middle"})
	bad(src, Options{Offset: -1})
	bad(Source{Dir: src.Dir, Task: "../x", Stream: Stdout}, Options{})
	bad(Source{Dir: src.Dir, Task: "x", Stream: "stdin"}, Options{})
	err := Read(t.Context(), Source{Dir: src.Dir, Task: "none", Stream: Stdout}, Options{}, nil)
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestWriterGoesOn(t *testing.T) {
	src := source(t)
	w := open(t, src, 10, 4)
	put(t, w, "abcdef")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w = open(t, src, 10, 4)
	put(t, w, "ghijk")
	if got := readAll(t, src, OriginStart, 0); got != "abcdefghijk" {
		t.Fatal(got)
	}
	files, err := src.Files()
	if err != nil || fmt.Sprint(files) != "[{0 4} {1 4} {2 3}]" {
		t.Fatalf("files: %v, %v", files, err)
	}
}

// Whatever is written, by writes or through a pipe, by one writer or several
// lives of it: the kept files hold an unbroken tail of it, as long as the limits
// allow.
func TestRotationKeepsTail(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		src := Source{Dir: t.TempDir(), Task: "t", Stream: Stderr}
		maxFiles := rapid.IntRange(1, 4).Draw(rt, "files")
		size := rapid.Int64Range(1, 40).Draw(rt, "size")
		var want []byte
		w := open(t, src, maxFiles, size)
		p := make([]int, 2)
		if err := unix.Pipe2(p, unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = unix.Close(p[0]); _ = unix.Close(p[1]) }()
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			data := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(rt, "data")
			want = append(want, data...)
			switch rapid.IntRange(0, 2).Draw(rt, "how") {
			case 0:
				if n, err := w.Write(data); n != len(data) || err != nil {
					rt.Fatal(n, err)
				}
			case 1:
				if _, err := unix.Write(p[1], data); err != nil {
					rt.Fatal(err)
				}
				for {
					if _, err := w.Splice(p[0]); errors.Is(err, unix.EAGAIN) {
						break
					} else if err != nil {
						rt.Fatal(err)
					}
				}
			case 2:
				_ = w.Close()
				w = open(t, src, maxFiles, size)
				if n, err := w.Write(data); n != len(data) || err != nil {
					rt.Fatal(n, err)
				}
			}
		}
		got := []byte(readAll(t, src, OriginStart, 0))
		if !bytes.HasSuffix(want, got) {
			rt.Fatalf("not a tail: %q of %q", got, want)
		}
		if least := min(int64(len(want)), int64(maxFiles-1)*size); int64(len(got)) < least {
			rt.Fatalf("kept %d of %d bytes, must keep %d", len(got), len(want), least)
		}
		files, _ := src.Files()
		if len(files) > maxFiles {
			rt.Fatalf("%d files, at most %d", len(files), maxFiles)
		}
		for _, f := range files {
			if f.Size > size {
				rt.Fatalf("file %d has %d bytes, at most %d", f.Index, f.Size, size)
			}
		}
	})
}

func TestFollowAcrossRotation(t *testing.T) {
	src := source(t)
	const lines = 5000
	done := make(chan struct{})
	started := make(chan struct{})
	go func() {
		defer close(done)
		<-started
		w, err := OpenWriter(src, 100000, 1000)
		if err != nil {
			t.Error(err)
			return
		}
		for i := range lines {
			if _, err := fmt.Fprintf(w, "%06d\n", i); err != nil {
				t.Error(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	var b strings.Builder
	files := map[string]int64{}
	close(started)
	err := Follow(t.Context(), src, Options{Done: done}, func(c Chunk) error {
		if files[c.File] != c.Offset {
			t.Errorf("%s: piece at %d, expected at %d", c.File, c.Offset, files[c.File])
		}
		files[c.File] += int64(len(c.Data))
		b.Write(c.Data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(b.String())
	if len(got) != lines {
		t.Fatalf("%d lines, want %d", len(got), lines)
	}
	for i, l := range got {
		if l != fmt.Sprintf("%06d", i) {
			t.Fatalf("line %d is %s", i, l)
		}
	}
}

func TestFollowEnds(t *testing.T) {
	src := source(t)
	w := open(t, src, 2, 100)
	put(t, w, "old")
	ctx, cancel := context.WithCancel(t.Context())
	// fn ends it through the context, after text that came while it waited.
	err := Follow(ctx, src, Options{Origin: OriginEnd, Offset: 1}, func(c Chunk) error {
		switch string(c.Data) {
		case "d":
			put(t, w, "new")
		case "new":
			cancel()
		default:
			t.Errorf("unexpected %q", c.Data)
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	mine := errors.New("mine")
	if err := Follow(t.Context(), src, Options{}, func(Chunk) error { return mine }); !errors.Is(err, mine) {
		t.Fatal(err)
	}
	if err := Follow(t.Context(), Source{Dir: src.Dir + "x", Task: "t", Stream: Stdout}, Options{}, nil); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

// A reader that files are deleted under goes on with the oldest left.
func TestReaderOvertaken(t *testing.T) {
	src := source(t)
	w := open(t, src, 2, 4)
	put(t, w, "aaaabb")
	r, err := OpenReader(src, OriginStart, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	c, err := r.Next()
	if err != nil || string(c.Data) != "aaaa" {
		t.Fatalf("%q %v", c.Data, err)
	}
	put(t, w, "bbccccddddee") // leaves dddd and ee
	var got string
	for {
		c, err := r.Next()
		if err != nil {
			break
		}
		got += string(c.Data)
	}
	if got != "ddddee" {
		t.Fatal(got)
	}
}
