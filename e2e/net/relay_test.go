//go:build netns

package net

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// badLinks is what a relay does to the packets that pass it, each way.
type badLinks struct {
	delay   time.Duration // each packet is held for so long
	loss    int           // per cent of the packets that are dropped
	reorder int           // per cent that are held for twice as long, so that later ones overtake them
}

// relay puts a relay into a host's cable: this kernel has no netem. The cable's end leaves the switch for a bridge of its own;
// between the two stand a pair of TAP devices, and between those this process, which reads frames from one and writes them
// to the other when their time has come.
func (h *host) relay(w badLinks) (undo func()) {
	t := h.network.t
	t.Helper()
	hub, n := h.network.hub, h.network.made.Add(1)
	own := fmt.Sprintf("side%d", n)
	ip(t, "-n", hub, "link", "add", own, "type", "bridge")
	ip(t, "-n", hub, "link", "set", own, "up")
	var taps [2]*os.File
	for i, bridge := range []string{own, "wire"} {
		name := fmt.Sprintf("tap%d.%d", n, i)
		var err error
		if taps[i], err = openTap(hub, name); err != nil {
			t.Fatal(err)
		}
		ip(t, "-n", hub, "link", "set", name, "master", bridge, "up")
	}
	ip(t, "-n", hub, "link", "set", h.port, "master", own)
	var wg sync.WaitGroup
	for i := range taps {
		line := make(chan queued, 4096) // more than that is lost, as on any line
		wg.Go(func() { w.take(taps[i], taps[1-i], line) })
		wg.Go(func() { give(taps[1-i], line) })
	}
	return undoing(t, func() {
		ip(t, "-n", hub, "link", "set", h.port, "master", "wire")
		for _, tap := range taps {
			_ = tap.Close() // the device goes with it
		}
		wg.Wait()
		ip(t, "-n", hub, "link", "del", own)
	})
}

// queued is a frame and when it is to go on.
type queued struct {
	frame []byte
	due   time.Time
}

// take reads frames until from is closed.
func (w badLinks) take(from, to *os.File, line chan<- queued) {
	defer close(line)
	buf := make([]byte, 1<<16)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if rand.IntN(100) < w.loss { // a test
			continue
		}
		frame := append([]byte(nil), buf[:n]...)
		if rand.IntN(100) < w.reorder { // a test
			time.AfterFunc(2*w.delay, func() { _, _ = to.Write(frame) }) // lost if the line is gone by then
			continue
		}
		select {
		case line <- queued{frame, time.Now().Add(w.delay)}:
		default:
		}
	}
}

// give writes frames when they are due.
func give(to *os.File, line <-chan queued) {
	for h := range line {
		time.Sleep(time.Until(h.due))
		_, _ = to.Write(h.frame) // lost if the line is gone
	}
}

// openTap makes a TAP device in a namespace. It is gone when the file is closed.
func openTap(ns, name string) (file *os.File, err error) {
	err = inside(ns, func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("/dev/net/tun: %w (the kernel needs TUN)", err)
		}
		req, err := unix.NewIfreq(name)
		if err == nil {
			req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
			err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
		}
		if err != nil {
			_ = unix.Close(fd)
			return fmt.Errorf("make TAP device %s: %w", name, err)
		}
		file = os.NewFile(uintptr(fd), name)
		return nil
	})
	return file, err
}
