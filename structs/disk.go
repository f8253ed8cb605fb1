package structs

import "fmt"

// DiskLimit describes when a disk counts as full: when less is free on it than MB MiB and less than
// Percent of its size. So the first counts on large disks, the second on small ones.
type DiskLimit struct {
	MB      int     // MiB; negative: no disk ever counts as full
	Percent float64 // of the disk's size
}

// How full a disk may get before the servers and clients that use it step down. What is left then must do for what
// they go on writing meanwhile.
var (
	DefaultServerDiskLimit = DiskLimit{MB: 64, Percent: 5}
	DefaultClientDiskLimit = DiskLimit{MB: 256, Percent: 5}
)

// Floor is how many bytes must be free on a disk of a size.
func (l DiskLimit) Floor(total uint64) uint64 {
	if l.MB < 0 {
		return 0
	}
	return min(uint64(l.MB)<<20, uint64(max(0, l.Percent)/100*float64(total))) // not negative
}

// Full reports whether the disk counts as full. One that was full does so until twice the floor is
// free, so that what is written at the limit does not flap.
func (l DiskLimit) Full(was bool, r DiskRoom) bool {
	floor := l.Floor(r.Total)
	if was {
		floor *= 2
	}
	return r.Free < floor
}

// DiskRoom is how much room there is on a disk.
type DiskRoom struct {
	Path  string // a directory on it
	Total uint64 // bytes
	Free  uint64 // bytes that are left to who has no privileges
}

// String returns how much is left, in a few words without the path.
func (r DiskRoom) String() string {
	return fmt.Sprintf("%s of %s left", bytesText(r.Free), bytesText(r.Total))
}

// bytesText is an amount of bytes for people.
func bytesText(n uint64) string {
	if n >= 10<<30 {
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
