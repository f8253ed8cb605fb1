package structs

import "testing"

func TestDiskLimit(t *testing.T) {
	t.Parallel()
	const mib, gib = uint64(1 << 20), uint64(1 << 30)
	f := func(l DiskLimit, total, free uint64, was, want bool) {
		t.Helper()
		if got := l.Full(was, DiskRoom{Total: total, Free: free}); got != want {
			t.Errorf("%+v, %d of %d free, full before: %t: full is %t", l, free, total, was, got)
		}
	}
	l := DiskLimit{MB: 64, Percent: 5}
	f(l, 1000*gib, 64*mib, false, false)
	f(l, 1000*gib, 64*mib-1, false, true)
	f(l, 1000*gib, 128*mib-1, true, true) // until twice the limit is free
	f(l, 1000*gib, 128*mib, true, false)
	f(l, 100*mib, 6*mib, false, false) // a small disk: the share counts
	f(l, 100*mib, 4*mib, false, true)
	f(l, 100*mib, 9*mib, true, true)
	f(l, 100*mib, 10*mib, true, false)
	f(DiskLimit{MB: -1, Percent: 5}, 100*mib, 0, true, false) // switched off
	f(DiskLimit{}, 100*mib, 0, false, false)
	f(l, 0, 0, false, false) // of a size that is not known
	if got, want := (DiskRoom{Total: 20 * gib, Free: 3 * mib}).String(), "3.0 MiB of 20.0 GiB left"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
