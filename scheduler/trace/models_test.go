package trace

import (
	"fmt"
	"hash/fnv"
	"slices"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// threeModels is machines of a common model, and of two scarce ones with little CPU.
func threeModels() []*structs.Node {
	return slices.Concat(modelMachines("a", 12, 96_000, 393_216, 8, "A"), modelMachines("b", 8, 16_000, 122_880, 2, "B"),
		modelMachines("c", 3, 32_000, 131_072, 4, "C"))
}

// mixture asks for shares and whole GPUs with more or less CPU, as the OpenB trace does.
func mixture(row *Row, draw uint64) {
	row.CPU, row.MemoryMB = []int{3000, 6000, 11_000, 16_000}[draw>>8%4], 8192
	switch k := draw % 10; {
	case k < 4:
		row.Share = []int{100, 250, 460, 810}[draw>>16%4]
	case k == 8:
		row.GPUs, row.CPU = 2, 2*row.CPU
	case k == 9:
		row.GPUs, row.CPU = 8, 64_000
	}
	row.Duration = Forever
}

// A cluster of which no request names a model places exactly as it did before scarcity was counted: what
// each machine had left then was recorded.
func TestWithoutNamedModelsNothingIsScarce(t *testing.T) {
	p := replayOf(threeModels())
	p.c.Rows, p.c.Drop, p.c.Until, p.c.Typical = load(400, sec(1), 7, mixture), true, 1.3, Learn()
	p.c.Scheduler.SetNodeOrder(structs.PolicyLeastFragmentation)
	r, err := newReplay(&p.c)
	if err == nil {
		err = r.run()
	}
	if err != nil {
		t.Fatal(err)
	}
	h := fnv.New64a()
	for i := range r.ledger.Machines {
		m := &r.ledger.Machines[i]
		_, _ = fmt.Fprintln(h, m.Name, m.Left, m.GPUs)
	}
	if got := fmt.Sprintf("%016x", h.Sum64()); got != "12ca2a654a14d662" || r.counts.Dropped == 0 {
		t.Errorf("machines are left as %s with %d dropped, want 12ca2a654a14d662 with some", got, r.counts.Dropped)
	}
}

// The policy gets all request keys that a server would give it, the measure of fragmentation only the commonest.
func TestTypicalRequestKeysAreAsManyAsOfAServer(t *testing.T) {
	p := replayOf(machines(4, 10_000_000, 393_216, 8))
	p.c.Rows = load(maxSeen+100, sec(1), 1, func(row *Row, _ uint64) { row.CPU, row.Share, row.Duration = int(row.Arrival/sec(1)), 1, Forever })
	p.c.Drop = true
	most := 0
	p.c.Typical = func(_ *scheduler.Input, typical []Typical) {
		most = max(most, len(typical))
		sum := 0.0
		for i := range typical {
			sum += typical[i].Share
		}
		if sum < 0.999 || sum > 1.001 {
			t.Fatalf("the shares of %d request keys add up to %v, not 1", len(typical), sum)
		}
	}
	r, err := newReplay(&p.c)
	if err == nil {
		err = r.run()
	}
	if err != nil {
		t.Fatal(err)
	}
	if most < maxSeen*3/4 || most > maxSeen || len(r.census.measured) != measuredRequestKeys {
		t.Errorf("up to %d request keys were given, %d measured with; want up to %d and %d", most, len(r.census.measured), maxSeen, measuredRequestKeys)
	}
}
