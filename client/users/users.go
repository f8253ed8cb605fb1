package users

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
)

// User is a user of this machine.
type User struct {
	// Name is its name, or its number where it has none.
	Name string
	UID  int
	// GID is its primary group; Groups are all, the primary one included.
	GID    int
	Groups []int
}

// Own reports whether the user is the one that this process runs as.
func (u User) Own() bool { return u.UID == os.Geteuid() }

// Lookup returns the user of that name or number; of an empty one, the user that this process runs as.
func Lookup(name string) (User, error) {
	if name == "" {
		return self(), nil
	}
	found, err := user.Lookup(name)
	if err != nil {
		if _, nerr := strconv.Atoi(name); nerr == nil {
			found, err = user.LookupId(name)
		}
	}
	if err != nil {
		return User{}, fmt.Errorf("task user %q: %w; create it on the node or leave user out", name, err)
	}
	u := User{Name: found.Username}
	var uerr, gerr error
	u.UID, uerr = strconv.Atoi(found.Uid)
	u.GID, gerr = strconv.Atoi(found.Gid)
	groups, err := found.GroupIds()
	if err = errors.Join(uerr, gerr, err); err != nil {
		return User{}, fmt.Errorf("task user %q: %w", name, err)
	}
	u.Groups = []int{u.GID}
	for _, g := range groups {
		if n, err := strconv.Atoi(g); err == nil && !slices.Contains(u.Groups, n) {
			u.Groups = append(u.Groups, n)
		}
	}
	return u, nil
}

// self returns the user that this process runs as, with a number for a name if the machine does not know it.
func self() User {
	u := User{Name: strconv.Itoa(os.Geteuid()), UID: os.Geteuid(), GID: os.Getegid()}
	if found, err := user.LookupId(u.Name); err == nil {
		u.Name = found.Username
	}
	u.Groups = []int{u.GID}
	more, _ := os.Getgroups() // without them the primary one counts alone
	for _, g := range more {
		if !slices.Contains(u.Groups, g) {
			u.Groups = append(u.Groups, g)
		}
	}
	return u
}
