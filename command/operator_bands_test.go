package command

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// Whatever the bands, what is told of a priority that none names is what the scheduler does.
func TestStrayPriorities(t *testing.T) {
	for _, bands := range [][]structs.PriorityBand{
		nil, {{Low: 1, High: 100}}, {{Low: 7, High: 7}}, {{Low: 3, High: 9}, {Low: 10, High: 10}, {Low: 12, High: 98}}, {{Low: 100, High: 100}},
	} {
		c := &structs.SchedulerConfiguration{Bands: bands}
		all, told := c.PriorityBands(), map[int]string{}
		for part := range strings.SplitSeq(strayText(c), ", ") {
			stray, belongs, is := strings.Cut(part, " to ")
			if !is {
				continue
			}
			low, high, isRange := strings.Cut(stray, "-")
			if !isRange {
				high = low
			}
			from, errFrom := strconv.Atoi(low)
			to, errTo := strconv.Atoi(high)
			if errFrom != nil || errTo != nil {
				t.Fatalf("%v: %q", bands, part)
			}
			for p := from; p <= to; p++ {
				told[p] = belongs
			}
		}
		for p := structs.JobMinPriority; p <= structs.JobMaxPriority; p++ {
			b, want := all[c.Band(p)], ""
			if p < b.Low || p > b.High {
				want = fmt.Sprintf("%d-%d", b.Low, b.High)
			}
			if told[p] != want {
				t.Errorf("bands %v: priority %d is told to belong to %q, it does to %q", bands, p, told[p], want)
			}
		}
	}
}
