package cgroup

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// DefaultParent is where an agent's groups are unless its configuration states another.
const DefaultParent = "nomadish.slice"

// probePrefix begins the names of groups that only try out whether one can be made.
const probePrefix = "probe-"

// sharesPerCPU is the weight of one process that is in no group, in a hierarchy of version 1.
const sharesPerCPU = 1024

// AgentName returns a name for the groups of the agent that has its state in dir. Two agents that run at once on one
// machine have different ones, also when they live in different mount namespaces.
func AgentName(dir string) string {
	id := filepath.Clean(dir)
	if info, err := os.Stat(dir); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			id += fmt.Sprintf("|%d|%d", st.Dev, st.Ino)
		}
	}
	sum := sha256.Sum256([]byte(id))
	return "agent-" + hex.EncodeToString(sum[:6])
}

// ValidateParent checks the path below which groups are made, relative to the root of each hierarchy.
func ValidateParent(parent string) error {
	switch {
	case parent == "" || filepath.IsAbs(parent) || filepath.Clean(parent) != parent || parent == "." || strings.HasPrefix(parent, ".."):
		return fmt.Errorf("control group %q: must be a path below the root of the hierarchies, such as %q", parent, DefaultParent)
	case strings.ContainsAny(parent, "\x00\n"):
		return fmt.Errorf("control group %q: must not contain a line break", parent)
	}
	return nil
}

// Base is an agent's directory in each hierarchy.
type Base struct {
	system *System
	parent string
	// unified is its directory in the unified hierarchy; empty: it cannot be used.
	unified string
	// of is its directory in the hierarchy of each controller that it can set limits with.
	of map[string]string
	// missing states why a controller is not in of.
	missing map[string]error
}

// Limited lists what can be limited: "memory", "pids" and "cpu", in this order.
func (b *Base) Limited() []string {
	var out []string
	for _, c := range controllers() {
		if b.of[c] != "" {
			out = append(out, c)
		}
	}
	return out
}

// Missing returns why not everything can be limited; empty if it can.
func (b *Base) Missing() string {
	var reasons, nowhere []string
	for _, c := range controllers() {
		switch err := b.missing[c]; {
		case errors.Is(err, errNotMounted):
			nowhere = append(nowhere, c)
		case err != nil && !slices.Contains(reasons, err.Error()):
			reasons = append(reasons, err.Error())
		}
	}
	switch {
	case len(nowhere) > 0 && b.system.unified == nil && len(b.system.of) == 0:
		reasons = append(reasons, "no control groups are mounted at /sys/fs/cgroup")
	case len(nowhere) > 0:
		reasons = append(reasons, "the kernel has no controller for "+strings.Join(nowhere, ", ")+", or none is passed on to where the agent runs")
	}
	return strings.Join(reasons, "; ")
}

// Open makes the directories below parent as far as that is possible, and finds out what can be limited there. It
// returns the same Base for a parent until Forget.
func (s *System) Open(parent string) (*Base, error) {
	if err := ValidateParent(parent); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.bases[parent]; b != nil {
		return b, nil
	}
	b := &Base{system: s, parent: parent, of: map[string]string{}, missing: map[string]error{}}
	made := map[*hierarchy]error{}
	if s.unified != nil {
		made[s.unified] = b.make(s.unified)
		if made[s.unified] == nil {
			b.unified = filepath.Join(s.unified.mount, parent)
		}
	}
	for _, c := range controllers() {
		h := s.of[c]
		if h == nil {
			b.missing[c] = errNotMounted
			continue
		}
		if _, tried := made[h]; !tried {
			made[h] = b.make(h)
		}
		dir, err := filepath.Join(h.mount, parent), made[h]
		if err == nil && h.v2 {
			err = b.enabled(c)
		}
		if err != nil {
			b.missing[c] = err
			continue
		}
		b.of[c] = dir
	}
	s.bases[parent] = b
	return b, nil
}

// errNotMounted: a controller is in none of the hierarchies.
var errNotMounted = errors.New("not mounted")

// Forget has the next Open look at the directories again, as after somebody removed them.
func (s *System) Forget(b *Base) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bases[b.parent] == b {
		delete(s.bases, b.parent)
	}
}

// make makes the base's directory in one hierarchy and finds out whether groups can be made and entered there.
func (b *Base) make(h *hierarchy) error {
	files := b.system.files
	if h.v2 {
		if err := b.system.born(); err != nil {
			return fmt.Errorf("a process cannot be born into a control group: %w; Linux 5.7 or newer is needed, without a filter for it", err)
		}
		if err := mayMove(h.home, h.mount, b.parent); err != nil {
			return err
		}
	}
	dir := h.mount
	for _, name := range strings.Split(b.parent, "/") {
		if h.v2 {
			b.enable(dir)
		}
		dir = filepath.Join(dir, name)
		err := files.Mkdir(dir)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("control group %s: %w; run the agent as root, or have a place delegated to it and name that as client { cgroup_parent }", dir, reason(err))
		}
		if err == nil && h == b.system.of[controllerCPU] && !h.v2 {
			// Together the tasks weigh as much as one process on each core: by default they would as one process.
			_ = files.WriteFile(filepath.Join(dir, "cpu.shares"), strconv.Itoa(sharesPerCPU*b.system.cpus))
		}
	}
	if h.v2 {
		b.enable(dir)
	}
	// The directory may be there and belong to somebody else.
	probe := filepath.Join(dir, probePrefix+strconv.Itoa(os.Getpid())+"-"+strconv.Itoa(unix.Gettid()))
	if err := files.Mkdir(probe); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("control group %s: none can be made below it: %w", dir, reason(err))
	}
	if err := files.Remove(probe); err != nil {
		return fmt.Errorf("control group %s: %w", probe, reason(err))
	}
	return nil
}

// enable passes the controllers on to the groups below dir, as far as dir has them. Whether they have come is
// looked at in the end (enabled): above the place that is delegated to an agent it may not write, and need not.
func (b *Base) enable(dir string) {
	file := filepath.Join(dir, "cgroup.subtree_control")
	on, err := b.system.files.ReadFile(file)
	if err != nil {
		return
	}
	for _, c := range controllers() {
		if !slices.Contains(strings.Fields(string(on)), c) && b.system.of[c] == b.system.unified {
			// One at a time: a controller that cannot be passed on must not keep back the others.
			_ = b.system.files.WriteFile(file, "+"+c)
		}
	}
}

// enabled reports, as an error, why the groups of the unified hierarchy do not have a controller.
func (b *Base) enabled(c string) error {
	dir := b.system.unified.mount
	for _, name := range append(strings.Split(b.parent, "/"), "") {
		on, err := b.system.files.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		if err != nil {
			return fmt.Errorf("control group %s: %w", dir, reason(err))
		}
		if !slices.Contains(strings.Fields(string(on)), c) {
			err := b.system.files.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), "+"+c)
			switch {
			case err == nil:
			case errors.Is(err, syscall.EBUSY):
				return fmt.Errorf("control group %s: it has processes of its own, so that controller %q cannot be passed on to groups below it; "+
					"move them to a group below it, or name another place as client { cgroup_parent }", dir, c)
			default:
				return fmt.Errorf("control group %s: controller %q cannot be passed on to groups below it: %w", dir, c, reason(err))
			}
		}
		dir = filepath.Join(dir, name)
	}
	return nil
}

// mayMove reports, as an error, why this process may not have children in groups below parent: for that it must be
// allowed to write to the nearest group above both it and them.
func mayMove(home, mount, parent string) error {
	if os.Geteuid() == 0 || home == "" {
		return nil
	}
	common, dest := home, filepath.Join(mount, parent)
	for common != mount && dest != common && !strings.HasPrefix(dest, common+"/") {
		common = filepath.Dir(common)
	}
	if err := unix.Access(filepath.Join(common, "cgroup.procs"), unix.W_OK); err != nil {
		return fmt.Errorf("control group %s: the agent may not move processes from its own group to %s: %w; run it as root, or in a group that is "+
			"delegated to it, with client { cgroup_parent } below that", common, dest, reason(err))
	}
	return nil
}

// Tidy removes the groups below the base that have no members, which processes that died have left, except those that
// keep names.
func (b *Base) Tidy(keep func(name string) bool) {
	for _, dir := range b.dirs() {
		entries, err := b.system.files.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.IsDir() && !strings.HasPrefix(e.Name(), probePrefix) && !keep(e.Name()) {
				// One with members stays: the kernel does not remove it.
				_ = removeTree(b.system.files, filepath.Join(dir, e.Name()))
			}
		}
	}
}

// Close removes the base's directories if no group is in them any more.
func (b *Base) Close() {
	b.system.Forget(b)
	for _, dir := range b.dirs() {
		_ = b.system.files.Remove(dir) // it stays while it has groups
	}
}

// dirs are the base's directories, each once.
func (b *Base) dirs() []string {
	out := []string{b.unified}
	for _, c := range controllers() {
		out = append(out, b.of[c])
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(dir string) bool { return dir == "" })
}

// reason takes the path, which is named already, out of an error.
func reason(err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}
