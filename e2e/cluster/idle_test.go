package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
)

// idlers are connections from many addresses that say something first, and then nothing.
type idlers struct {
	mu    sync.Mutex
	conns []net.Conn
}

// open opens perAddr connections from each of some addresses of this machine's own, from the one of a number on.
func (i *idlers) open(t *testing.T, to string, from, addrs, perAddr int, first []byte) {
	t.Helper()
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	next := make(chan int)
	for range 16 {
		wg.Go(func() {
			for n := range next {
				d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(from+n%addrs))}, Timeout: harness.Scaled(30 * time.Second)} // small
				conn, err := d.Dial("tcp", to)
				if err == nil {
					i.mu.Lock()
					i.conns = append(i.conns, conn)
					i.mu.Unlock()
					if len(first) > 0 {
						_, err = conn.Write(first)
					}
				}
				if err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	for n := range addrs * perAddr {
		next <- n
	}
	close(next)
	wg.Wait()
	if err := failed.Load(); err != nil {
		t.Fatal(*err)
	}
}

// gone is how many of the connections the other side has closed.
func (i *idlers) gone(t *testing.T) int {
	t.Helper()
	n := 0
	for _, c := range i.conns {
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		err = raw.Read(func(fd uintptr) bool { // it does not wait
			buf := make([]byte, 1<<10)
			read, _, err := syscall.Recvfrom(int(fd), buf, syscall.MSG_DONTWAIT) // a file
			for err == nil && read > 0 {                                         // it is told why, or asked whether it is there
				read, _, err = syscall.Recvfrom(int(fd), buf, syscall.MSG_DONTWAIT) // a file
			}
			if !errors.Is(err, syscall.EAGAIN) {
				n++
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func (i *idlers) close() {
	for _, c := range i.conns {
		_ = c.Close()
	}
	i.conns = nil
}

// resident is how much memory a process has, in MiB.
func resident(t *testing.T, pid int) int {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(raw))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize() >> 20
}

// TestIdleConnections: 10,000 connections that say nothing, to the port of RPC and then to that of HTTP, are held within limits,
// and the server goes on answering the others. What one address opens beyond its share is refused, and logged once.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	const addrs, perAddr, beyond = 100, 100, 50 // as many of each as the default limits let in, and of one more
	filesFor(t, addrs*perAddr+beyond)
	a := harness.NewAgent(t, false, "name = \"idle\"\nserver {\n  enabled = true\n  bootstrap_expect = 1\n}\n")
	a.Start()
	a.WaitReady(0)
	f := func(what, to string, first []byte, text string) {
		t.Helper()
		before := resident(t, a.Cmd.Process.Pid)
		reserved := &idlers{}
		defer reserved.close()
		began := time.Now()
		reserved.open(t, to, 1, 1, perAddr, first)
		reserved.open(t, to, 1, 1, beyond, first)
		harness.Within(t, 10*time.Second, "those beyond the share being closed, and no others", func(context.Context) error {
			if n := reserved.gone(t); n != beyond {
				return fmt.Errorf("%s: %d of %d are", what, n, perAddr+beyond)
			}
			return nil
		})
		reserved.open(t, to, 2, addrs-1, perAddr, first)
		opened := time.Since(began)
		began = time.Now()
		if out, code := a.CLI("job", "run", "-detach", a.JobFile("idle-"+what, restfulBatch("idle-"+what))); code != 0 {
			t.Errorf("%s: job run: exit %d\n%s", what, code, out)
		}
		took := time.Since(began)
		after := resident(t, a.Cmd.Process.Pid)
		t.Logf("FIGURE %d idle connections to %s: opened in %v; %d → %d MiB; a job registered in %v", addrs*perAddr, what,
			opened.Round(time.Millisecond), before, after, took.Round(time.Millisecond))
		if most := addrs * perAddr * idleKiB >> 10; after-before > most {
			t.Errorf("%s: %d MiB for idle connections, at most %d are expected", what, after-before, most)
		}
		if n := a.LogCount(text); n != 1 {
			t.Errorf("%s: %q is logged %d times", what, text, n)
		}
	}
	f("rpc", a.RPC, []byte{0x6e}, "rpc_max_conns_per_client is reached")
	f("http", strings.TrimPrefix(a.HTTP, "http://"), nil, "http_max_conns_per_client is reached")
}

// filesFor has this process and those that it starts open so many files, and some for other tests.
func filesFor(t *testing.T, n uint64) {
	t.Helper()
	n += 4000
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Cur >= n {
		return
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: max(n, limit.Max)}); err != nil {
		t.Fatalf("this test opens more than %d files, and only %d may be open here: raise the hard limit (ulimit -n %d): %v", n-4000, limit.Max, n, err)
	}
}

// idleKiB is what an idle connection may cost a server at most, in KiB, under the race detector too.
const idleKiB = 256

func restfulBatch(name string) string {
	return fmt.Sprintf("job %q {\n  type = \"batch\"\n  group \"g\" {\n    task \"t\" {\n      driver = \"mock_driver\"\n      config {\n        run_for = \"1s\"\n      }\n    }\n  }\n}\n", name)
}
