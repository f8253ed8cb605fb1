package logs

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The streams of a task.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// Source names one stream of one task.
type Source struct {
	// Dir is the log directory of the allocation.
	Dir string
	// Task is the task's name.
	Task string
	// Stream is Stdout or Stderr.
	Stream string
}

// File is one file of a stream.
type File struct {
	// Index is the number at the end of the name.
	Index int
	// Size is in bytes; it grows while the file is the last one.
	Size int64
}

// Validate refuses a source that cannot name a log file of its directory.
func (s Source) Validate() error {
	switch {
	case s.Stream != Stdout && s.Stream != Stderr:
		return fmt.Errorf("log stream %q: must be %q or %q", s.Stream, Stdout, Stderr)
	case s.Task == "" || s.Task != filepath.Base(s.Task) || s.Task == "." || s.Task == "..":
		return fmt.Errorf("log of task %q: not a task's name", s.Task)
	case !filepath.IsAbs(s.Dir):
		return fmt.Errorf("log directory %q: must be absolute", s.Dir)
	}
	return nil
}

// Name is the file name of the stream's file of that index.
func (s Source) Name(index int) string {
	return s.prefix() + strconv.Itoa(index)
}

// Path is the whole path of the stream's file of that index.
func (s Source) Path(index int) string {
	return filepath.Join(s.Dir, s.Name(index))
}

func (s Source) prefix() string { return s.Task + "." + s.Stream + "." }

// index reads the number off a file name; ok is false for names that are not of
// this stream.
func (s Source) index(name string) (int, bool) {
	tail, ok := strings.CutPrefix(name, s.prefix())
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(tail)
	if err != nil || n < 0 || strconv.Itoa(n) != tail {
		return 0, false
	}
	return n, true
}

// Files lists the stream's files, the oldest first. None is not an error, nor is
// a directory that does not exist.
func (s Source) Files() ([]File, error) {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list logs: %w", err)
	}
	var files []File
	for _, e := range entries {
		n, ok := s.index(e.Name())
		if !ok || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted by rotation since it was listed
		}
		if err != nil {
			return nil, fmt.Errorf("list logs: %w", err)
		}
		files = append(files, File{Index: n, Size: info.Size()})
	}
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Index, b.Index) })
	return files, nil
}
