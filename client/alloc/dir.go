package alloc

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/nomadish/nomadish/structs"
)

// The names within an allocation's directory.
const (
	sharedName  = "alloc"
	logsName    = "logs"
	localName   = "local"
	secretsName = "secrets"
)

// Dir is an allocation's directory. The zero Dir is that of a simulated
// allocation: it has no files.
type Dir struct{ path string }

// NewDir gives the directory of an allocation below base. Nothing is made yet.
func NewDir(base, allocID string) (Dir, error) {
	if allocID == "" || !filepath.IsLocal(allocID) || filepath.Base(allocID) != allocID || allocID == "." {
		return Dir{}, fmt.Errorf("allocation directory: %q is not an allocation's ID", allocID)
	}
	return Dir{filepath.Join(base, allocID)}, nil
}

// Path is the directory itself; empty for a simulated allocation.
func (d Dir) Path() string { return d.path }

func (d Dir) join(parts ...string) string {
	if d.path == "" {
		return ""
	}
	return filepath.Join(append([]string{d.path}, parts...)...)
}

// Shared is the directory that all tasks see.
func (d Dir) Shared() string { return d.join(sharedName) }

// Logs takes the tasks' output.
func (d Dir) Logs() string { return d.join(sharedName, logsName) }

// Task is a task's own directory.
func (d Dir) Task(name string) string { return d.join(name) }

// Local is what a task may write to.
func (d Dir) Local(task string) string { return d.join(task, localName) }

// Secrets is what nobody but a task and the agent sees.
func (d Dir) Secrets(task string) string { return d.join(task, secretsName) }

// ValidTaskName refuses a name that cannot be a directory of its own.
func ValidTaskName(name string) error {
	if name == "" || name == "." || name == ".." || name == sharedName || filepath.Base(name) != name || len(name) > 200 {
		return fmt.Errorf("task name %q: cannot name a directory; use letters, digits, dashes", name)
	}
	return nil
}

// BuildShared makes what all tasks share.
func (d Dir) BuildShared() error {
	if d.path == "" {
		return nil
	}
	if err := mkdir(d.path, 0o711); err != nil {
		return err
	}
	if err := mkdir(d.Shared(), 0o755); err != nil {
		return err
	}
	for _, name := range []string{"data", "tmp"} {
		if err := mkdir(d.join(sharedName, name), 0o777); err != nil {
			return err
		}
	}
	return mkdir(d.Logs(), 0o755)
}

// BuildTask makes a task's own directories, owned by the user that it runs as.
func (d Dir) BuildTask(task *structs.Task) error {
	if d.path == "" {
		return nil
	}
	if err := ValidTaskName(task.Name); err != nil {
		return err
	}
	if err := mkdir(d.Task(task.Name), 0o711); err != nil {
		return err
	}
	uid, gid, err := owner(task.User)
	if err != nil {
		return err
	}
	for _, sub := range []struct {
		name string
		mode os.FileMode
	}{{localName, 0o755}, {secretsName, 0o700}, {"tmp", 0o700}} {
		path := d.join(task.Name, sub.name)
		if err := mkdir(path, sub.mode); err != nil {
			return err
		}
		if uid < 0 {
			continue
		}
		if err := os.Lchown(path, uid, gid); err != nil {
			return fmt.Errorf("task directory: %w; only an agent that runs as root can run tasks as other users", err)
		}
	}
	return nil
}

// owner looks up a user; -1 for the agent's own.
func owner(name string) (uid, gid int, err error) {
	if name == "" {
		return -1, -1, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return 0, 0, fmt.Errorf("task user %q: %w; create it on the node or leave user out", name, err)
	}
	if uid, err = strconv.Atoi(u.Uid); err != nil {
		return 0, 0, fmt.Errorf("task user %q: uid %q: %w", name, u.Uid, err)
	}
	if gid, err = strconv.Atoi(u.Gid); err != nil {
		return 0, 0, fmt.Errorf("task user %q: gid %q: %w", name, u.Gid, err)
	}
	if uid == os.Getuid() {
		return -1, -1, nil
	}
	return uid, gid, nil
}

// mkdir makes a directory of exactly that mode, whatever the umask is. One that
// is there is kept as it is: it is from an earlier start of the task, which owns it.
func mkdir(path string, mode os.FileMode) error {
	err := os.Mkdir(path, mode)
	if errors.Is(err, os.ErrExist) {
		info, serr := os.Lstat(path)
		if serr == nil && !info.IsDir() {
			return fmt.Errorf("task directory %s: is in the way and no directory", path)
		}
		return nil
	}
	if err == nil {
		err = os.Chmod(path, mode)
	}
	if err != nil {
		return fmt.Errorf("task directory: %w", err)
	}
	return nil
}

// WritePayload gives a dispatched job's payload to its task as a file below local.
func (d Dir) WritePayload(task, file string, payload []byte) (err error) {
	if d.path == "" {
		return nil
	}
	root, err := os.OpenRoot(d.Local(task))
	if err != nil {
		return fmt.Errorf("dispatch payload: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if dir := filepath.Dir(file); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("dispatch payload %q: %w", file, err)
		}
	}
	if err := root.WriteFile(file, payload, 0o644); err != nil {
		return fmt.Errorf("dispatch payload %q: %w", file, err)
	}
	return nil
}

// Remove deletes the directory with everything in it.
func (d Dir) Remove() error {
	if d.path == "" {
		return nil
	}
	if err := os.RemoveAll(d.path); err != nil {
		return fmt.Errorf("allocation directory: %w", err)
	}
	return nil
}
