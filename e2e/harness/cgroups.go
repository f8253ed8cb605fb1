package harness

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// CgroupsNamed lists the control groups whose path has a word in it.
func CgroupsNamed(word string) []string {
	var out []string
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.Contains(path, word) {
			out = append(out, path)
		}
		return nil // a group that went away meanwhile is none
	})
	return out
}

// CgroupParent is where the tasks of all agents of this process have their control groups.
var CgroupParent = "nomadish-e2e-" + strconv.Itoa(os.Getpid())

// tidyCgroups removes the control groups that agents have left which were killed with their tasks. It returns 1 if one stays.
func tidyCgroups() int {
	for deadline := time.Now().Add(Scaled(10 * time.Second)); ; time.Sleep(10 * time.Millisecond) { // what was killed may be ending still
		var left []string
		for _, dir := range slices.Backward(CgroupsNamed(CgroupParent)) { // those below others first
			if err := syscall.Rmdir(dir); err != nil {
				left = append(left, fmt.Sprintf("%s: %v", dir, err))
			}
		}
		if len(left) == 0 {
			return 0
		}
		if time.Now().After(deadline) {
			fmt.Fprintf(os.Stderr, "control groups are left: %q\n", left)
			return 1
		}
	}
}
