// Package diskroom measures how much room a disk has, for servers and clients alike. What counts as full is in structs, and what follows is for the caller.
package diskroom

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/structs"
)

// Measure returns the room on the file system of dir. Where no file can be made any more there is none.
func Measure(dir string) (structs.DiskRoom, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return structs.DiskRoom{}, fmt.Errorf("room on the disk of %s: %w", dir, err)
	}
	block := uint64(max(0, s.Bsize)) // not negative
	r := structs.DiskRoom{Path: dir, Total: s.Blocks * block, Free: s.Bavail * block}
	if s.Files > 0 && s.Ffree == 0 {
		r.Free = 0
	}
	return r, nil
}
