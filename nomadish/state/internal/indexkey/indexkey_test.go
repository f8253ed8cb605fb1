package indexkey

import (
	"cmp"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/structs"
)

// IDs keep their order and form as keys, and only whole canonical UUIDs are such keys.
func TestUUIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := structs.DeriveID(rapid.String().Draw(t, "a"), 0)
		b := structs.DeriveID(rapid.String().Draw(t, "b"), 0)
		x, ok := ParseUUID(a)
		y, _ := ParseUUID(b)
		if !ok || x.String() != a || x.Compare(y) != cmp.Compare(a, b) {
			t.Fatalf("%s is %s, %v", a, x, ok)
		}
		n := rapid.IntRange(0, UUIDLen).Draw(t, "length")
		low, _ := FillUUID(a[:n], '0')
		high, _ := FillUUID(a[:n], 'f')
		if low.Compare(x) > 0 || high.Compare(x) < 0 || (y.Compare(low) >= 0 && y.Compare(high) <= 0) != (b[:n] == a[:n]) {
			t.Fatalf("%s: from %s to %s", a[:n], low, high)
		}
	})
	f := func(id string) {
		t.Helper()
		if u, ok := ParseUUID(id); ok {
			t.Errorf("%q is taken for %s", id, u)
		}
	}
	id := structs.DeriveID("s", 0)
	f("")
	f(id[:35])
	f(id + "0")
	f("ABCDEF" + id[6:])
	f(id[:8] + "0" + id[9:])
	f("-" + id[1:])
	f(id[:35] + "g")
	f("é" + id[2:])
}
