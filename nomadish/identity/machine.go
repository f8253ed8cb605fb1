package identity

import (
	"os/user"

	"github.com/nomadish/nomadish/structs"
)

// machine is the user database of this machine.
type machine struct{}

// Groups implements Database.
func (machine) Groups(name string) (groups []string, known bool) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, false
	}
	ids, err := u.GroupIds()
	if err != nil {
		return nil, true
	}
	for _, id := range ids {
		if g, err := user.LookupGroupId(id); err == nil && structs.ValidUser(g.Name) {
			groups = append(groups, g.Name)
		}
	}
	return groups, true
}

// HasGroup implements Database.
func (machine) HasGroup(name string) bool {
	_, err := user.LookupGroup(name)
	return err == nil
}
