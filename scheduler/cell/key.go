package cell

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// readableKey is the longest key that states the structure itself; a longer one is
// hashed.
const readableKey = 64

// makeKey writes the tree with equal neighbours counted, as in
// node(2*socket(2*pcie(2*gpu))), and then the links.
func (s *Layout) makeKey() string {
	var b strings.Builder
	b.WriteString(s.subtree(0, map[int32]string{}))
	for d, edges := range s.edges {
		for _, e := range edges {
			if int(e.to) > d {
				fmt.Fprintf(&b, "+%d-%d:%d", d, e.to, e.lanes)
			}
		}
	}
	if b.Len() <= readableKey {
		return b.String()
	}
	high, low := fnv128(b.String())
	return fmt.Sprintf("#%016x%016x", high, low)
}

// subtree writes one vertex and all below it, each class once.
func (s *Layout) subtree(v int32, known map[int32]string) string {
	class := s.vs[v].class
	if text, found := known[class]; found {
		return text
	}
	text := s.levels[s.vs[v].level]
	if strings.Trim(text, "abcdefghijklmnopqrstuvwxyz-_") != "" {
		text = strconv.Quote(text) // so that no name can look like structure
	}
	open := "("
	for c := v + 1; c < s.vs[v].end; {
		next, n := s.vs[c].end, 1
		for next < s.vs[v].end && s.vs[next].class == s.vs[c].class {
			next, n = s.vs[next].end, n+1
		}
		child := s.subtree(c, known)
		if n > 1 {
			child = strconv.Itoa(n) + "*" + child
		}
		if len(child) > readableKey {
			high, low := fnv128(child) // keeps the text of a tall uneven tree from doubling
			child = fmt.Sprintf("#%016x%016x", high, low)
		}
		text += open + child
		open, c = ",", next
	}
	if open == "," {
		text += ")"
	}
	known[class] = text
	return text
}

// fnv128 is FNV-1a with 128 bits.
// Source: Fowler, Noll, Vo, draft-eastlake-fnv: prime 2^88 + 2^8 + 0x3b.
func fnv128(text string) (high, low uint64) {
	high, low = 0x6c62272e07bb0142, 0x62b821756295c58d
	for i := range len(text) {
		low ^= uint64(text[i])
		carry, product := bits.Mul64(low, 1<<8+0x3b)
		high = high*(1<<8+0x3b) + carry + low<<24
		low = product
	}
	return high, low
}
