package executor

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nomadish/nomadish/client/cgroup"
)

// record is what is kept on disk of a task. The environment and the arguments
// are not: they may contain secrets, and nobody needs them again.
type record struct {
	Version int
	ID      string
	State   State
	// BootID is the kernel's name of the boot in which the process started.
	BootID     string
	Pid        int
	StartTicks uint64
	StartedAt  time.Time
	Logs       LogSpec
	CgroupV2   string
	// Cgroup are the task's own control groups, written down before they are made; nil: it has none.
	Cgroup *cgroup.Group `json:",omitempty"`
	// Suspended is true if the task was suspended, or was about to be (the record keeps the first name); Freezer is the file
	// by which its cgroup was suspended, empty if its processes were stopped one by one.
	Suspended bool   `json:"Frozen,omitempty"`
	Freezer   string `json:",omitempty"`
	Exit      *Exit
	Dropped   int64
}

const (
	recordVersion = 1
	recordName    = "task.json"
	tasksDir      = "tasks"
)

// store keeps the records: a directory per task, which has its FIFOs as well.
type store struct{ dir string }

// taskDir is the directory of a task. Escaping keeps any ID one path element.
func taskDir(dir, id string) string {
	return filepath.Join(dir, tasksDir, "t-"+url.PathEscape(id))
}

// fifoPath is where a stream of a task runs through.
func fifoPath(dir, id, stream string) string {
	return filepath.Join(taskDir(dir, id), stream)
}

// create makes the task's directory.
func (s store) create(id string) error {
	if err := os.MkdirAll(taskDir(s.dir, id), 0o700); err != nil {
		return fmt.Errorf("task directory: %w", err)
	}
	return nil
}

// put writes the record so that a reader sees the old or the new one, never a
// part. durable makes it survive a crash of the machine too: that is needed for
// an exit only, since no process survives one.
func (s store) put(rec *record, durable bool) error {
	rec.Version = recordVersion
	data, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("record of task: %w", err)
	}
	path := filepath.Join(taskDir(s.dir, rec.ID), recordName)
	tmp := path + ".tmp"
	if err := writeFile(tmp, data, durable); err != nil {
		return fmt.Errorf("record of task: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("record of task: %w", err)
	}
	if durable {
		return syncDir(filepath.Dir(path))
	}
	return nil
}

func writeFile(path string, data []byte, durable bool) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && durable {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// remove forgets a task.
func (s store) remove(id string) error {
	if err := os.RemoveAll(taskDir(s.dir, id)); err != nil {
		return fmt.Errorf("task directory: %w", err)
	}
	return nil
}

// load reads all records. Directories without a readable record are what a crash
// of the machine left of tasks whose processes it ended as well; they are
// removed.
func (s store) load() ([]*record, error) {
	base := filepath.Join(s.dir, tasksDir)
	entries, err := os.ReadDir(base)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("tasks: %w", err)
	}
	var recs []*record
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), "t-")
		if !ok || !e.IsDir() {
			continue
		}
		dir := filepath.Join(base, e.Name())
		data, err := os.ReadFile(filepath.Join(dir, recordName))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("record of task: %w", err)
		}
		rec, derr := decodeRecord(data)
		if derr != nil || url.PathEscape(rec.ID) != name {
			if err := os.RemoveAll(dir); err != nil {
				return nil, fmt.Errorf("record of task: %w", err)
			}
			continue
		}
		recs = append(recs, rec)
	}
	return recs, nil
}

func decodeRecord(data []byte) (*record, error) {
	rec := &record{}
	if err := json.Unmarshal(data, rec); err != nil {
		return nil, fmt.Errorf("record of task: %w", err)
	}
	switch {
	case rec.Version < 1 || rec.Version > recordVersion:
		return nil, fmt.Errorf("record of task %q: version %d; this executor knows 1 to %d", rec.ID, rec.Version, recordVersion)
	case rec.ID == "" || len(rec.ID) > maxIDLen:
		return nil, errors.New("record of task: no ID")
	case rec.State == StateRunning && rec.Pid <= 1:
		return nil, fmt.Errorf("record of task %q: pid %d", rec.ID, rec.Pid)
	case rec.State == StateExited && rec.Exit == nil:
		return nil, fmt.Errorf("record of task %q: ended, but its exit is missing", rec.ID)
	case rec.State != StateStarting && rec.State != StateRunning && rec.State != StateExited:
		return nil, fmt.Errorf("record of task %q: state %q", rec.ID, rec.State)
	}
	return rec, nil
}
