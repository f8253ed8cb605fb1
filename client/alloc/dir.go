package alloc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nomadish/nomadish/client/users"
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

// NewDir returns the directory of an allocation below base. Nothing is made yet.
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

// access specifies who may enter an allocation's directories beside the agent.
type access struct {
	// uid is the only user beside the agent's that tasks run as, -1 if there are several.
	uid int
	// gid is a group that all tasks have, -1 if there is none.
	gid int
	// own: all tasks run as the agent's user, so nobody else is to enter.
	own bool
}

// ownAccess is the access of an allocation all of whose tasks run as the agent's user.
var ownAccess = access{uid: -1, gid: -1, own: true}

// with returns the access that lets a user in too, who is not the agent's.
func (x access) with(u users.User) access {
	switch {
	case os.Geteuid() != 0: // only root can run a task as somebody else: it will not start
		return x
	case x.own || x.uid == u.UID:
		return access{uid: u.UID, gid: u.GID}
	}
	return access{uid: -1, gid: -1}
}

// modes returns the mode of the allocation's directory, of alloc and its logs, and of what tasks write to in alloc.
//
// A directory with others in it belongs to the agent's user whoever the tasks run as: a task that could replace alloc/logs
// with a link would have the agent, which is root, write where the link leads.
func (x access) modes() (top, shared, written os.FileMode) {
	switch {
	case x.own:
		return unbuilt, 0o700, 0o700
	case x.gid < 0: // nothing distinguishes the tasks of different users from others
		return 0o711, 0o755, 0o777
	case x.uid >= 0:
		// Files that are made in alloc and logs get the group of the directory.
		return entered, 0o750 | os.ModeSetgid, 0o700
	}
	return entered, 0o750 | os.ModeSetgid, 0o770 | os.ModeSetgid
}

const (
	// unbuilt is the mode of an allocation's directory that nobody else may enter yet, or ever.
	unbuilt = 0o700
	// entered is that of one which a group may enter.
	entered = 0o710
)

// buildTop makes the allocation's directory itself and returns who may enter it. One that was made earlier keeps what
// it has: processes that run may depend on it. assign assigns the directory to a group of its own and returns that, or -1.
func (d Dir) buildTop(x access, assign func(dir string) (int, error)) (access, error) {
	if _, err := mkdir(d.path, unbuilt); err != nil || x.own {
		return x, err
	}
	info, err := os.Lstat(d.path)
	if err != nil {
		return x, fmt.Errorf("task directory: %w", err)
	}
	switch info.Mode().Perm() {
	case unbuilt:
		gid, err := assign(d.path)
		if gid >= 0 || err != nil {
			x.gid = gid
		}
		return x, err
	case entered:
		x.gid = groupOfDir(d.path)
	default:
		x.gid = -1
	}
	return x, nil
}

// buildShared makes what all tasks share.
func (d Dir) buildShared(x access) error {
	top, shared, written := x.modes()
	for _, sub := range []struct {
		path string
		mode os.FileMode
		uid  int
	}{
		{d.Shared(), shared, -1},
		{d.join(sharedName, "data"), written, x.uid}, {d.join(sharedName, "tmp"), written, x.uid},
		{d.Logs(), shared, -1},
	} {
		if err := mkdirFor(sub.path, sub.mode, sub.uid, x.gid); err != nil {
			return err
		}
	}
	if x.own {
		return nil
	}
	// Last: nobody enters before everything is as it should be.
	info, err := os.Lstat(d.path)
	if err == nil && info.Mode().Perm() != unbuilt {
		return nil
	}
	return errors.Join(err, chownMode(d.path, top, -1, x.gid))
}

// buildTask makes a task's own directories, owned by the user that it runs as.
func (d Dir) buildTask(name string, u users.User, x access) error {
	if err := ValidTaskName(name); err != nil {
		return err
	}
	mode := os.FileMode(0o700)
	switch {
	case x.own:
	case x.gid >= 0:
		mode = 0o710
	default:
		mode = 0o711
	}
	if err := mkdirFor(d.Task(name), mode, -1, x.gid); err != nil {
		return err
	}
	uid, gid := u.UID, u.GID
	if u.Own() {
		uid, gid = -1, -1
	}
	for _, sub := range []string{localName, secretsName, "tmp"} {
		path := d.join(name, sub)
		if _, err := mkdir(path, 0o700); err != nil {
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

// mkdirFor makes a directory of that mode, owner and group; -1 leaves one of them as it is. One that is there is kept
// as it is.
func mkdirFor(path string, mode os.FileMode, uid, gid int) error {
	made, err := mkdir(path, 0o700)
	if err != nil || !made {
		return err
	}
	return chownMode(path, mode, uid, gid)
}

// chownMode sets a directory's owner and group, then its mode, which a change of owner may take bits from.
func chownMode(path string, mode os.FileMode, uid, gid int) error {
	if uid >= 0 || gid >= 0 {
		if err := os.Lchown(path, uid, gid); err != nil {
			return fmt.Errorf("task directory: %w; only an agent that runs as root can run tasks as other users", err)
		}
	}
	if err := os.Chmod(path, mode); err != nil {
		return fmt.Errorf("task directory: %w", err)
	}
	return nil
}

// mkdir makes a directory of exactly that mode, whatever the umask is. One that is there is kept as it is (made is
// false): it is from an earlier start of the task, which owns it.
func mkdir(path string, mode os.FileMode) (made bool, err error) {
	err = os.Mkdir(path, mode)
	if errors.Is(err, os.ErrExist) {
		info, serr := os.Lstat(path)
		if serr == nil && !info.IsDir() {
			return false, fmt.Errorf("task directory %s: is in the way and no directory", path)
		}
		return false, nil
	}
	if err == nil {
		err = os.Chmod(path, mode)
	}
	if err != nil {
		return false, fmt.Errorf("task directory: %w", err)
	}
	return true, nil
}

// WritePayload writes a dispatched job's payload for its task to a file below local.
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
