package cells

import "testing"

// TestShortOfUnknownKinds: of a kind that the hardware does not have, every cell is short, in the order of the kinds, and asking so adds it to no chain.
func TestShortOfUnknownKinds(t *testing.T) {
	c := twoRacks(t).Chain()
	was := describe(c)
	f := func(want Kind, short int, changes ...Change) {
		t.Helper()
		kind, n := c.Short(changes...)
		if kind != want || n != short {
			t.Errorf("%v: short by %d of %v, want %d of %v", changes, n, kind, short, want)
		}
	}
	f(rack(3), 2, Change{rack(3), 2})
	f(rack(1), 1, Change{rack(1), 1})
	f(rack(1), 3, Change{rack(1), 1}, Change{rack(1), 2})
	f(Kind{}, 0, Change{rack(1), 1}, Change{rack(1), -1})
	f(rack(3), 1, Change{rack(1), 1}, Change{rack(3), 1}) // the highest is stated
	f(rack(1), 1, Change{rack(2), 2}, Change{rack(1), 1}) // there are two racks of 2
	f(rack(2), 1, Change{rack(1), 1}, Change{rack(2), 3})
	f(whole, 1, Change{rack(1), 0}, Change{rack(3), 0}, Change{rack(2), 1}, Change{whole, 3}) // two nodes are left
	if got := describe(c); got != was {
		t.Errorf("the chain has become\n%s\nfrom\n%s", got, was)
	}
}
