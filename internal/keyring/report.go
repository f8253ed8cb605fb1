package keyring

import (
	"maps"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// ErrAbsent refuses a change of keys without servers that would not learn of it. names are those, one at least.
func ErrAbsent(names []string) error {
	return structs.Errorf(structs.CodeConflict, "nothing was changed: %s has failed, and could not come back without the key", strings.Join(names, ", ")).
		WithHint("start it, or `nomadish server force-leave %s` if it is lost", names[0])
}

// Reasons returns why each of some members did not do what was requested. failed has the reasons by the members' names.
func Reasons(failed map[string]string) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		out = append(out, name+" ("+failed[name]+")")
	}
	return strings.Join(out, ", ")
}
