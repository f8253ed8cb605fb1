//go:build netns

package net

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/e2e/harness"
)

// Faults. Each gives the function that undoes it, which may be called again without harm and is called at the test's end in
// any case. Faults are independent of each other and may be laid over one another in any order.

// undoing makes sure of a fault's end.
func undoing(t *testing.T, undo func()) func() {
	once := sync.OnceFunc(undo)
	t.Cleanup(once)
	return once
}

// filter drops packets on a host that match any of the rules, in nft's words; what the host says to itself is let be.
func (h *host) filter(in, out []string) (undo func()) {
	t := h.network.t
	t.Helper()
	table := fmt.Sprintf("fault%d", h.network.made.Add(1))
	var b strings.Builder
	fmt.Fprintf(&b, "table inet %s {\n", table)
	for _, chain := range []struct {
		hook, lo string
		rules    []string
	}{{"input", "iifname", in}, {"output", "oifname", out}} {
		fmt.Fprintf(&b, "chain %s { type filter hook %s priority 0;\n", chain.hook, chain.hook)
		for _, rule := range chain.rules {
			fmt.Fprintf(&b, "%s != \"lo\" %s drop\n", chain.lo, rule)
		}
		b.WriteString("}\n")
	}
	b.WriteString("}\n")
	if err := h.nft(b.String()); err != nil {
		t.Fatal(err)
	}
	return undoing(t, func() {
		if err := h.nft("delete table inet " + table); err != nil {
			t.Error(err)
		}
	})
}

func (h *host) nft(script string) error {
	return inside(h.ns, func() error {
		cmd := exec.Command("nft", "-f", "-")
		cmd.Stdin = strings.NewReader(script)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("nft: %w %s(the kernel needs nf_tables with numgen)\n%s", err, out, script)
		}
		return nil
	})
}

// unplug pulls the host's cable: it sees that there is none.
func (h *host) unplug() (undo func()) {
	t := h.network.t
	t.Helper()
	ip(t, "-n", h.network.hub, "link", "set", h.port, "down")
	return undoing(t, func() { ip(t, "-n", h.network.hub, "link", "set", h.port, "up") })
}

// cutOff loses everything that comes to the host and goes from it, in silence.
func (h *host) cutOff() (undo func()) {
	h.network.t.Helper()
	return h.filter([]string{""}, []string{""})
}

// cutFrom loses everything between two hosts.
func (h *host) cutFrom(others ...*host) (undo func()) {
	h.network.t.Helper()
	var in, out []string
	for _, o := range others {
		in, out = append(in, "ip saddr "+o.addr), append(out, "ip daddr "+o.addr)
	}
	return h.filter(in, out)
}

// deafTo loses what others send to the host; they hear it.
func (h *host) deafTo(others ...*host) (undo func()) {
	h.network.t.Helper()
	var in []string
	for _, o := range others {
		in = append(in, "ip saddr "+o.addr)
	}
	return h.filter(in, nil)
}

// cutPort loses what has the port at either end, to and from the host: one protocol (tcp, udp) of it, or both (empty).
func (h *host) cutPort(proto string, port int) (undo func()) {
	h.network.t.Helper()
	of := "meta l4proto { tcp, udp }"
	if proto != "" {
		of = "meta l4proto " + proto
	}
	rules := []string{fmt.Sprintf("%s th sport %d", of, port), fmt.Sprintf("%s th dport %d", of, port)}
	return h.filter(rules, rules)
}

// cutAllBut loses everything to and from the host but TCP that has the port at either end.
func (h *host) cutAllBut(port int) (undo func()) {
	h.network.t.Helper()
	// Not "tcp sport != P tcp dport != P": nft 1.0.6 takes both for one field, which differs if either does.
	others := fmt.Sprintf("{ 0-%d, %d-65535 }", port-1, port+1)
	rules := []string{"meta l4proto udp", fmt.Sprintf("tcp sport %s tcp dport %s", others, others)}
	return h.filter(rules, rules)
}

// lossy loses a share of the packets that come to the host, and as many of those that go.
func (h *host) lossy(percent int) (undo func()) {
	h.network.t.Helper()
	rule := []string{fmt.Sprintf("numgen random mod 100 < %d", percent)}
	return h.filter(rule, rule)
}

// pause stops an agent as a debugger or a machine out of memory does; its tasks go on.
func pause(a *harness.Agent) (undo func()) {
	a.T.Helper()
	process := a.Cmd.Process
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		a.T.Fatal(err)
	}
	once := sync.OnceFunc(func() {
		if err := process.Signal(syscall.SIGCONT); err != nil && !errors.Is(err, os.ErrProcessDone) {
			a.T.Error(err)
		}
	})
	a.T.Cleanup(once)
	return once
}

// disk is a small file system of its own.
type disk struct {
	t   *testing.T
	dir string
}

// newDisk mounts a disk of some MiB. Make it before the agent that is to live on it.
func newDisk(t *testing.T, mib int) *disk {
	t.Helper()
	d := &disk{t: t, dir: t.TempDir()}
	name := ownedName("disk")
	if err := unix.Mount(name, d.dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mib)); err != nil {
		t.Fatalf("mount a tmpfs: %v (this test needs root)", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(d.dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", d.dir, err)
		}
	})
	return d
}

// config makes it the data_dir.
func (d *disk) config() string { return fmt.Sprintf("data_dir = %q\n", filepath.Join(d.dir, "data")) }

// fill leaves no room on the disk.
func (d *disk) fill() (undo func()) {
	d.t.Helper()
	path := filepath.Join(d.dir, "ballast")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, size := range []int{1 << 20, 1 << 12} { // what is left is less than a page
		block := make([]byte, size)
		for err = nil; err == nil; {
			_, err = f.Write(block)
		}
		if !errors.Is(err, unix.ENOSPC) {
			d.t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		d.t.Fatal(err)
	}
	return undoing(d.t, func() {
		// A process that is being started may hold the file open for a moment longer.
		if err := errors.Join(os.Truncate(path, 0), os.Remove(path)); err != nil {
			d.t.Error(err)
		}
	})
}
