package users

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ClosedError names a directory that a user cannot enter.
type ClosedError struct {
	User  string
	Dir   string
	Mode  os.FileMode
	Owner string
}

// Error returns which directory it is, why the user cannot enter it, and how to open it.
func (e *ClosedError) Error() string {
	return fmt.Sprintf("user %q cannot enter %s (mode %04o, owner %s): allow it with chmod %o %[2]s, or set client { alloc_dir } to a directory that all users of tasks can enter",
		e.User, e.Dir, e.Mode, e.Owner, e.Mode|0o111)
}

// CheckEnter returns a ClosedError for the first directory on the way to path, path included, that the user cannot
// enter. A directory with an access control list counts as open: the list itself is not read.
func CheckEnter(path string, u User) error {
	if u.UID == 0 {
		return nil
	}
	ways := []string{path}
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		ways = append(ways, real)
	}
	for _, way := range ways {
		dir := "/"
		for part := range strings.SplitSeq(filepath.Clean(way), "/") {
			dir = filepath.Join(dir, part)
			if err := checkDir(dir, u); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkDir(dir string, u User) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("directory of tasks: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	execute := os.FileMode(0o001)
	switch {
	case int(st.Uid) == u.UID:
		execute = 0o100
	case slices.Contains(u.Groups, int(st.Gid)):
		execute = 0o010
	}
	if info.Mode()&execute != 0 || hasACL(dir) {
		return nil
	}
	return &ClosedError{User: u.Name, Dir: dir, Mode: info.Mode().Perm(), Owner: ownerName(int(st.Uid))}
}

// hasACL reports whether a directory has an access control list beside its mode.
func hasACL(dir string) bool {
	_, err := unix.Getxattr(dir, "system.posix_acl_access", nil)
	return err == nil || errors.Is(err, unix.ERANGE)
}

func ownerName(uid int) string {
	id := strconv.Itoa(uid)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}
