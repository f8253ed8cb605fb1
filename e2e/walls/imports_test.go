package walls

import (
	"strings"
	"testing"
)

// TestTable: the table of imports says what is wrong with itself.
func TestTable(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a row before any group":   {"structs:", "within a group"},
		"a group without a number": {"[structs is data]", "the number of its wall"},
		"a package twice":          {"[1 data]\nstructs:\nstructs:", "each package once"},
		"a row without a colon":    {"[1 data]\nstructs", "want `package: what it imports`"},
		"an import from below":     {"[1 data]\nstructs: scheduler\nscheduler:", "scheduler does not"},
	} {
		if rows, err := table(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v, want an error with %q", name, rows, err, c.want)
		}
	}
}

// TestTableAgainstPackages: a row that names no package, one that names what its package does not import, and packages without a
// row are reported. What a package imports and its row does not name is among the files of TestGuardsSee.
func TestTableAgainstPackages(t *testing.T) {
	rows, err := table("[1 data]\nstructs:\ngone:\ninternal/wire: structs\n[2 algorithms]\nscheduler/bucket: structs\n")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, b := range load(t).compare(rows) {
		all = append(all, b.String())
	}
	found := strings.Join(all, "\n")
	for _, want := range []string{
		"the row gone names no package", "wall 2: scheduler/bucket: does not import structs", "wall 0: scheduler/cell: has no row",
		"wall 1: internal/wire: imports internal/codec, which its row",
	} {
		if !strings.Contains(found, want) {
			t.Errorf("not reported: %s; reported:\n%s", want, found)
		}
	}
}
