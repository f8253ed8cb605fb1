package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// Ports of tests are those from firstPort, which neither the system gives to who connects nor an agent to its tasks. Packages of tests
// run at once, and an agent's port is free between its choice and its start, and while it is dead: so a process takes
// them in blocks that no other has.
const (
	firstPort = 10_000
	portBlock = 200
	allBlocks = 50
)

// ownPorts are the ports that this process has left of its last block: none is given twice, whoever listens on it by now.
var ownPorts struct {
	mu   sync.Mutex
	left []int
	// claims are those of its blocks: what nobody refers to is closed when garbage is collected, and others could take the block then.
	claims []func()
}

// FreePort returns a port that nobody listens on, and that no other test gets.
func FreePort(t testing.TB) int {
	t.Helper()
	ownPorts.mu.Lock()
	defer ownPorts.mu.Unlock()
	for {
		if len(ownPorts.left) == 0 && !takeBlock() {
			t.Fatalf("no free port between %d and %d", firstPort, firstPort+portBlock*allBlocks)
		}
		port := ownPorts.left[0]
		ownPorts.left = ownPorts.left[1:]
		if l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			_ = l.Close() // it never carried anything
			return port
		}
	}
}

// takeBlock takes a block that no process has, until this one ends, and reports whether there was one.
func takeBlock() bool {
	for _, block := range rand.Perm(allBlocks) { // a test
		release := claim(fmt.Sprintf("ports-%d", block))
		if release == nil {
			continue
		}
		ownPorts.claims = append(ownPorts.claims, release)
		for i := range portBlock {
			ownPorts.left = append(ownPorts.left, firstPort+block*portBlock+i)
		}
		return true
	}
	return false
}
