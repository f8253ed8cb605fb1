package reserve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
)

// text writes amounts that are missing of a request. MHz beside cores are further cores where the instances state cores only: slots of projects take MHz of a
// node, and none of its cores.
func (c *chooser) text(r *request, a workflow.Amounts) string {
	mhz := c.mhzPerCore()
	if more := a.CPU - a.Cores*mhz; more > 0 && mhz > 0 && r.inCores(mhz) {
		a.Cores += (more + mhz - 1) / mhz
		a.CPU = a.Cores * mhz
	}
	return text(a, mhz)
}

// text writes amounts for users. Cores imply their MHz, mhz each: MHz are those beside them.
func text(a workflow.Amounts, mhz int64) string {
	var list []string
	a.CPU -= a.Cores * mhz
	for _, part := range []struct {
		n         int64
		one, many string
	}{
		{a.Cores, "core", "cores"}, {a.CPU, "MHz", "MHz"}, {a.MemoryMB, "MiB of memory", "MiB of memory"}, {a.DiskMB, "MiB of disk", "MiB of disk"},
		{a.Devices, "GPU", "GPUs"},
	} {
		switch {
		case part.n == 1:
			list = append(list, "1 "+part.one)
		case part.n > 1:
			list = append(list, fmt.Sprintf("%d %s", part.n, part.many))
		}
	}
	return strings.Join(list, ", ")
}

// inCores reports whether all instances of the stages state cores, and no MHz beside those of these.
func (r *request) inCores(mhz int64) bool {
	return !slices.ContainsFunc(r.stages, func(s []workflow.Instance) bool {
		return slices.ContainsFunc(s, func(i workflow.Instance) bool { return i.Needs.CPU != i.Needs.Cores*mhz })
	})
}

// isMissing states that amounts, as text writes them, are missing, and where.
func isMissing(amounts, where string) string {
	if strings.HasPrefix(amounts, "1 ") && !strings.Contains(amounts, ", ") {
		return amounts + where + " is missing"
	}
	return amounts + where + " are missing"
}
