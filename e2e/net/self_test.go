//go:build netns

package net

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/e2e/harness"
)

// echo sends back on the host what comes to a port, by TCP and UDP.
func (h *host) echo(port int) {
	t := h.network.t
	t.Helper()
	addr := fmt.Sprintf("%s:%d", h.addr, port)
	var l net.Listener
	var p net.PacketConn
	err := inside(h.ns, func() (err error) {
		if l, err = net.Listen("tcp", addr); err == nil {
			p, err = net.ListenPacket("udp", addr)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = l.Close()
		_ = p.Close()
	})
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, from, err := p.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = p.WriteTo(buf[:n], from)
		}
	}()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close() //nolint:errcheck // a test's echo
				_, _ = io.Copy(c, c)
			}()
		}
	}()
}

// pings sends n numbered datagrams and gives those that were sent back in the order in which they came, and the shortest
// time that one took.
func (h *host) pings(to *host, port, n int, wait time.Duration) (back []uint32, shortest time.Duration) {
	t := h.network.t
	t.Helper()
	c, err := h.dial(t.Context(), "udp", fmt.Sprintf("%s:%d", to.addr, port))
	if err != nil {
		t.Error(err)
		return nil, 0
	}
	defer c.Close() //nolint:errcheck // a datagram socket
	sent := make([]time.Time, n)
	for i := range n {
		sent[i] = time.Now()
		_, _ = c.Write(binary.BigEndian.AppendUint32(nil, uint32(i))) // a host that is cut off may know that it is
	}
	shortest = time.Hour
	buf := make([]byte, 64)
	_ = c.SetReadDeadline(time.Now().Add(wait))
	for len(back) < n {
		if _, err := c.Read(buf); err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() { //nolint:errorlint // as the net package gives it
				break
			}
			continue
		}
		i := binary.BigEndian.Uint32(buf)
		back, shortest = append(back, i), min(shortest, time.Since(sent[i]))
	}
	return back, shortest
}

// heard reports whether a datagram to a port comes back.
func (h *host) heard(to *host, port int) bool {
	h.network.t.Helper()
	for range 5 {
		if back, _ := h.pings(to, port, 1, 200*time.Millisecond); len(back) == 1 {
			return true
		}
	}
	return false
}

// answers sends n datagrams and returns the numbers of those that come back over a link that loses some. It sends them
// again, up to four times, while fewer than a fifth come back: where the address of to must be resolved first, a lost ARP
// request is repeated after a second only, and nothing comes back before.
func (h *host) answers(to *host, port, n int) (back []uint32) {
	h.network.t.Helper()
	for range 5 {
		if back, _ = h.pings(to, port, n, harness.Scaled(time.Second)); len(back) >= n/5 {
			break
		}
	}
	return back
}

// called reports whether a TCP connection carries data there and back.
func (h *host) called(to *host, port int, data []byte, limit time.Duration) bool {
	h.network.t.Helper()
	ctx, cancel := context.WithTimeout(h.network.t.Context(), limit)
	defer cancel()
	c, err := h.dial(ctx, "tcp", fmt.Sprintf("%s:%d", to.addr, port))
	if err != nil {
		return false
	}
	defer c.Close() //nolint:errcheck // read to its end
	_ = c.SetDeadline(time.Now().Add(limit))
	go func() { _, _ = c.Write(data) }()
	got := make([]byte, len(data))
	_, err = io.ReadFull(c, got)
	return err == nil && bytes.Equal(got, data)
}

// TestNetFaultsOfItself: each fault does what it says, no more, and is gone when undone.
func TestNetFaultsOfItself(t *testing.T) {
	t.Parallel()
	w := newNetwork(t, 3)
	a, b, c := w.hosts[0], w.hosts[1], w.hosts[2]
	for _, h := range w.hosts {
		h.echo(7)
		h.echo(8)
	}
	// what passes: a-b, a-c and b-c by UDP at port 7; a-b at port 8 by UDP and TCP
	f := func(what string, fault func() func(), want string) {
		t.Helper()
		see := func() string {
			probes := []func() bool{
				func() bool { return a.heard(b, 7) }, func() bool { return a.heard(c, 7) }, func() bool { return b.heard(c, 7) },
				func() bool { return a.heard(b, 8) }, func() bool { return a.called(b, 8, []byte("hello"), time.Second) },
			}
			seen := make([]byte, len(probes))
			var wg sync.WaitGroup
			for i, probe := range probes {
				wg.Go(func() {
					seen[i] = '-'
					if probe() {
						seen[i] = '+'
					}
				})
			}
			wg.Wait()
			return string(seen)
		}
		undo := fault()
		if got := see(); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
		undo()
		undo()
		harness.Within(t, 10*time.Second, what+" undone", func(context.Context) error {
			if got := see(); got != "+++++" {
				return fmt.Errorf("%s", got)
			}
			return nil
		})
	}
	f("nothing", func() func() { return func() {} }, "+++++")
	f("cut off", b.cutOff, "-+---")
	f("unplugged", b.unplug, "-+---")
	f("cut from one", func() func() { return a.cutFrom(b) }, "-++--")
	f("cut from all", func() func() { return a.cutFrom(b, c) }, "--+--")
	f("deaf", func() func() { return b.deafTo(a) }, "-++--")
	f("a port of both", func() func() { return b.cutPort("", 8) }, "+++--")
	f("a port of TCP", func() func() { return b.cutPort("tcp", 8) }, "++++-")
	f("a port of UDP", func() func() { return b.cutPort("udp", 8) }, "+++-+")
	f("all but a port of TCP", func() func() { return b.cutAllBut(8) }, "-+--+")
	f("all but another port of TCP", func() func() { return b.cutAllBut(9) }, "-+---")

	one, two := b.cutPort("", 8), b.cutOff()
	one()
	if a.heard(b, 8) {
		t.Error("undoing one fault undid another")
	}
	two()

	undo := b.lossy(30)
	back := a.answers(b, 7, 500)
	undo()
	if len(back) < 100 || len(back) > 400 { // 245 and 11 are to be expected
		t.Errorf("with 30 %% lost each way %d of 500 come back", len(back))
	}
}

// TestNetDeaf: one way lost means that the other still passes.
func TestNetDeaf(t *testing.T) {
	t.Parallel()
	w := newNetwork(t, 2)
	a, b := w.hosts[0], w.hosts[1]
	var in net.PacketConn
	err := inside(b.ns, func() (err error) {
		in, err = net.ListenPacket("udp", b.addr+":9")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // a datagram socket
	a.deafTo(b)
	a.pings(b, 9, 1, 0)
	_ = in.SetReadDeadline(time.Now().Add(harness.Scaled(10 * time.Second)))
	if _, _, err := in.ReadFrom(make([]byte, 64)); err != nil {
		t.Errorf("the host that is deaf is not heard: %v", err)
	}
}

// TestNetRelay: the relay holds packets back, drops and reorders a share, and carries TCP through it whole.
func TestNetRelay(t *testing.T) {
	t.Parallel()
	w := newNetwork(t, 2)
	a, b := w.hosts[0], w.hosts[1]
	b.echo(7)
	data := bytes.Repeat([]byte("what goes in comes out. "), 1<<14)

	undo := b.relay(badLinks{delay: 50 * time.Millisecond})
	back, shortest := a.pings(b, 7, 50, harness.Scaled(10*time.Second))
	if len(back) != 50 || shortest < 100*time.Millisecond {
		t.Errorf("held 50 ms each way: %d of 50 come back, the quickest after %v", len(back), shortest)
	}
	for i, n := range back {
		if int(n) != i {
			t.Fatalf("out of order without being told to: %v", back)
		}
	}
	if !a.called(b, 7, data, harness.Scaled(20*time.Second)) {
		t.Error("TCP through a relay that delays is not whole")
	}
	undo()
	if _, shortest := a.pings(b, 7, 50, time.Second); shortest >= 100*time.Millisecond {
		t.Errorf("undone, the quickest still takes %v", shortest)
	}

	undo = b.relay(badLinks{delay: 20 * time.Millisecond, loss: 5, reorder: 10})
	back = a.answers(b, 7, 500)
	overtaken := 0
	for i := 1; i < len(back); i++ {
		if back[i] < back[i-1] {
			overtaken++
		}
	}
	// A busy machine drops datagrams of its own accord.
	if len(back) == 500 || len(back) < 100 || overtaken == 0 {
		t.Errorf("5 %% lost and 10 %% reordered each way: %d of 500 come back, %d overtaken", len(back), overtaken)
	}
	if !a.called(b, 7, data, harness.Scaled(60*time.Second)) {
		t.Error("TCP through a relay that loses and reorders is not whole")
	}
	undo()
}

// TestNetDisk: a full disk is full, and has room again.
func TestNetDisk(t *testing.T) {
	t.Parallel()
	d := newDisk(t, 4)
	write := func() error { return os.WriteFile(filepath.Join(d.dir, "x"), make([]byte, 1<<16), 0o600) }
	undo := d.fill()
	if err := write(); err == nil || !strings.Contains(err.Error(), unix.ENOSPC.Error()) {
		t.Errorf("writing to a full disk: %v", err)
	}
	undo()
	if err := write(); err != nil {
		t.Error(err)
	}
}

// TestNetSweep: what a test process that died has left is removed, and nothing that belongs to one alive.
func TestNetSweep(t *testing.T) {
	t.Parallel()
	need(t, "ip", "iproute2")
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	left := fmt.Sprintf("nd%d.1-left", dead.Process.Pid)
	kept := ownedName("kept")
	for _, name := range []string{left, kept} {
		ip(t, "netns", "add", name)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	}
	task := exec.Command("ip", "netns", "exec", left, "sleep", "1000")
	if err := task.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = task.Process.Kill() })
	harness.Within(t, 10*time.Second, "the process in its namespace", func(context.Context) error {
		out, err := exec.Command("ip", "netns", "pids", left).Output()
		if err == nil && len(out) == 0 {
			err = errors.New("none yet")
		}
		return err
	})
	sweepNow()
	if err := task.Wait(); err == nil {
		t.Error("a process of a dead test goes on")
	}
	for name, want := range map[string]bool{left: false, kept: true} {
		if _, err := os.Stat(filepath.Join("/run/netns", name)); (err == nil) != want {
			t.Errorf("%s is there: %t, want %t", name, err == nil, want)
		}
	}
}
