package agent

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxCore bounds the cores that may be named.
const maxCore = 65535

// parseCores reads a list of cores such as "0-3,6", sorted and without doubles.
func parseCores(s string) ([]uint16, error) {
	var out []uint16
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		from, err := strconv.ParseUint(strings.TrimSpace(low), 10, 16)
		if err != nil {
			return nil, fmt.Errorf("%q: must be a list of cores such as 0-3,6", s)
		}
		to, err := strconv.ParseUint(strings.TrimSpace(high), 10, 16)
		if err != nil || to < from || to > maxCore {
			return nil, fmt.Errorf("%q: must be a list of cores such as 0-3,6", s)
		}
		for core := from; core <= to; core++ {
			out = append(out, uint16(core)) // bounded by its parsing
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
