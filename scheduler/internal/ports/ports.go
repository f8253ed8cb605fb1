// Package ports is the ports of a node's addresses: which of them collide, and which a node keeps for itself.
package ports

import (
	"cmp"
	"strconv"
	"strings"
)

// HostPort is a port of one of a node's addresses; an empty or unspecified
// address means all of them.
type HostPort struct {
	Port int
	IP   string
}

// Compare orders ports by number, then by address.
func Compare(a, b HostPort) int {
	return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.IP, b.IP))
}

func (p HostPort) everywhere() bool { return p.IP == "" || p.IP == "0.0.0.0" || p.IP == "::" }

// Collides reports whether two allocations cannot both have these ports.
func (p HostPort) Collides(o HostPort) bool {
	return p.Port == o.Port && (p.IP == o.IP || p.everywhere() || o.everywhere())
}

// Parse reads "22,80,8500-8600". What it cannot read reserves nothing: the
// client has checked it.
func Parse(s string) [][2]int {
	var out [][2]int
	for part := range strings.SplitSeq(s, ",") {
		low, high, isRange := strings.Cut(strings.TrimSpace(part), "-")
		from, err := strconv.Atoi(strings.TrimSpace(low))
		if err != nil {
			continue
		}
		to := from
		if isRange {
			if to, err = strconv.Atoi(strings.TrimSpace(high)); err != nil {
				continue
			}
		}
		out = append(out, [2]int{from, to})
	}
	return out
}
