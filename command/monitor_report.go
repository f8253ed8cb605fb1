package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/structs"
)

const (
	// progressEvery is the least time between two lines about the same group.
	progressEvery = time.Second
	// failedShown is how many failed allocations are named one by one.
	failedShown = 10
)

// groupCount is what was last said of a group with many instances.
type groupCount struct {
	placed int
	text   string
	said   time.Time // zero: no line about its progress yet
}

// progress says for each group, where it has changed, how many of its instances are
// in which status: all that there is to say when done, else no more than a line
// every progressEvery. It gives the time after which to look again, changed or not.
func (m *monitor) progress(allocs []*structs.AllocListStub, done bool) time.Duration {
	status, nodes := map[string]map[string]int{}, map[string]map[string]bool{}
	for _, a := range allocs {
		if status[a.TaskGroup] == nil {
			status[a.TaskGroup], nodes[a.TaskGroup] = map[string]int{}, map[string]bool{}
		}
		status[a.TaskGroup][a.ClientStatus]++
		nodes[a.TaskGroup][a.NodeID] = true
	}
	again := 10 * time.Second
	for _, name := range slices.Sorted(maps.Keys(status)) {
		last := m.counts[name]
		if last == nil {
			last = &groupCount{}
			m.counts[name] = last
		}
		placed := 0
		for _, n := range status[name] { // a sum: order does not matter
			placed += n
		}
		if placed != last.placed {
			last.placed, last.text = placed, fmt.Sprintf("%d %s", placed, structs.AllocClientPending)
			m.line("Group %q: %d placed on %s", name, placed, plural(len(nodes[name]), "node"))
		}
		text := countText(status[name])
		if text == last.text {
			continue
		}
		now := m.e.now()
		if left := progressEvery - now.Sub(last.said); !done && !last.said.IsZero() && left > 0 {
			again = min(again, max(left, 10*time.Millisecond))
			continue
		}
		last.text, last.said = text, now
		m.line("Group %q: %s", name, text)
	}
	return again
}

// countText lists counts by status, those that are yet to start last.
func countText(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if late := structs.AllocClientPending; (a == late) != (b == late) {
			if a == late {
				return 1
			}
			return -1
		}
		return cmp.Compare(a, b)
	})
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
	}
	return strings.Join(parts, ", ")
}

// failed names the allocations that failed or were lost, and tells whether any did.
func (m *monitor) failed(allocs []*structs.AllocListStub) bool {
	var bad []*structs.AllocListStub
	for _, a := range allocs {
		if unwell(a) {
			bad = append(bad, a)
		}
	}
	if len(bad) == 0 {
		return false
	}
	slices.SortFunc(bad, func(a, b *structs.AllocListStub) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	m.line("%d of %s failed:", len(bad), plural(len(allocs), "allocation"))
	for _, a := range bad[:min(len(bad), failedShown)] {
		again := ""
		if a.NextAllocation != "" || a.FollowupEvalID != "" {
			again = " (it is tried again)"
		}
		m.e.printf("      * %s %q on node %q%s%s%s\n", a.Name, short(a.ID, m.verbose), a.NodeName, exitText(a), because(a), again)
	}
	if more := len(bad) - failedShown; more > 0 {
		m.e.printf("      * and %d more: `nomadish job allocs %s%s` lists them\n", more, inNamespace(m.ns), shellWord(m.jobID))
	}
	m.e.printf("    `nomadish alloc status %s%s` says more\n", inNamespace(m.ns), short(bad[0].ID, m.verbose))
	return true
}

func unwell(a *structs.AllocListStub) bool {
	return a.ClientStatus == structs.AllocClientFailed || a.ClientStatus == structs.AllocClientLost
}

// because is why an allocation failed, to be put behind its status: what its node
// says, and what happened last to a task of it. Empty: it did not fail, or nobody knows.
func because(a *structs.AllocListStub) string {
	if !unwell(a) {
		return ""
	}
	text := ""
	if a.ClientDescription != "" {
		text = ": " + a.ClientDescription
	}
	// A task that failed says more than its siblings, which were only killed for it.
	for _, failed := range []bool{true, false} {
		for _, name := range slices.Sorted(maps.Keys(a.TaskStates)) {
			if t := a.TaskStates[name]; t != nil && t.Failed == failed {
				if last := lastMessage(t); last != "" {
					return fmt.Sprintf("%s; task %q: %s", text, name, last)
				}
			}
		}
	}
	return text
}

// lastMessage is the text of the last event that has one.
func lastMessage(t *structs.TaskState) string {
	for _, ev := range slices.Backward(t.Events) {
		if ev == nil {
			continue
		}
		if text := strings.Join(strings.Fields(cmp.Or(ev.DisplayMessage, ev.Message, ev.DriverError)), " "); text != "" {
			return text
		}
	}
	return ""
}

// inNamespace is the flag that a suggested command needs to find a job of a namespace.
func inNamespace(namespace string) string {
	if namespace == "" || namespace == structs.DefaultNamespace {
		return ""
	}
	return "-namespace " + shellWord(namespace) + " "
}

// stopped says why following ended early and gives the exit code. An interrupt ends
// only the following: it says so, and how to stop the job.
func (m *monitor) stopped(err error) int {
	if !errors.Is(err, context.Canceled) {
		return m.e.fail(err)
	}
	switch {
	case m.jobID == "":
		m.line("Interrupted: only the following ends, the evaluation goes on")
	case m.stopping:
		m.line("Interrupted: only the following ends, job %q is stopped all the same", m.jobID)
	default:
		m.line("Interrupted: only the following ends, job %q goes on; stop it with `nomadish job stop %s%s`",
			m.jobID, inNamespace(m.ns), shellWord(m.jobID))
	}
	return exitInterrupted
}
