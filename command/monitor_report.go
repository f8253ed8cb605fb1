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

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/structs"
)

const (
	// progressEvery is the least time between two lines about the same group.
	progressEvery = time.Second
	// failedShown is how many ways to fail are reported, each with one allocation.
	failedShown = 10
)

// groupCount is what was last printed about a group with many instances.
type groupCount struct {
	placed  int
	text    string
	printed time.Time // zero: no line about its progress yet
}

// progress prints for each group, where it has changed, how many of its instances are
// in which status: everything when done, else no more than a line
// every progressEvery. It returns the time after which to look again, changed or not.
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
		if left := progressEvery - now.Sub(last.printed); !done && !last.printed.IsZero() && left > 0 {
			again = min(again, max(left, 10*time.Millisecond))
			continue
		}
		last.text, last.printed = text, now
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

// failed names allocations that failed or were lost, of which there is one at least: one for each way in which they did.
func (m *monitor) failed(allocs []*structs.AllocListStub) {
	var bad []*structs.AllocListStub
	for _, a := range allocs {
		if unwell(a) {
			bad = append(bad, a)
		}
	}
	slices.SortFunc(bad, func(a, b *structs.AllocListStub) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), // web[2] before web[10]
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	m.line("%d of %s failed:", len(bad), plural(len(allocs), "allocation"))
	alike, left := alikeOf(bad), len(bad)
	for _, list := range alike[:min(len(alike), failedShown)] {
		m.e.printf("      * %s\n", m.named(list[0])+because(list[0])+likeIt(list))
		left -= len(list)
	}
	if left > 0 {
		m.e.printf("      * and %d more: `nomadish job allocs %s%s` lists them\n", left, inNamespace(m.ns), shellWord(m.jobID))
	}
	m.e.printf("    `nomadish alloc status %s%s` shows more\n", inNamespace(m.ns), short(bad[0].ID, m.verbose))
}

// placedBefore prints what has become of the allocations of a job that was submitted as it was, so that nothing was placed. It returns
// the exit code that following them would have had, where none of them runs any more.
func (m *monitor) placedBefore(ctx context.Context, ev *structs.Evaluation) (int, error) {
	q := &api.Query{Namespace: ev.Namespace}
	job, _, err := m.e.client.Jobs().Info(ctx, ev.JobID, q)
	if err != nil {
		return exitDone, err
	}
	allocs, _, err := m.e.client.Jobs().Allocations(ctx, ev.JobID, false, q)
	if err != nil {
		return exitDone, err
	}
	allocs = slices.DeleteFunc(allocs, func(a *structs.AllocListStub) bool {
		return a.JobVersion != job.Version || a.DesiredStatus != structs.AllocDesiredRun || a.NextAllocation != ""
	})
	if len(allocs) == 0 {
		return exitDone, nil
	}
	counts := map[string]int{}
	for _, a := range allocs {
		counts[statusText(a)]++
	}
	m.line("Nothing is placed: this version of the job has been placed before (%s)", countText(counts))
	alive := func(a *structs.AllocListStub) bool { return !structs.TerminalClientStatus(a.ClientStatus) }
	if slices.ContainsFunc(allocs, alive) || !slices.ContainsFunc(allocs, unwell) {
		return exitDone, nil
	}
	m.failed(allocs)
	m.e.printf("    `nomadish job eval -force-reschedule %s%s` runs again what has failed\n", inNamespace(m.ns), shellWord(m.jobID))
	return exitFailed, nil
}

// alikeOf puts those together that failed in the same way, in the order of their first ones.
func alikeOf(bad []*structs.AllocListStub) (out [][]*structs.AllocListStub) {
	at := map[[2]string]int{}
	for _, a := range bad {
		key := [2]string{a.TaskGroup, because(a)}
		i, known := at[key]
		if !known {
			i, out = len(out), append(out, nil)
			at[key] = i
		}
		out[i] = append(out[i], a)
	}
	return out
}

// likeIt returns how many more than the first of a list failed as that did, and how many are tried again.
func likeIt(list []*structs.AllocListStub) string {
	again := 0
	for _, a := range list {
		if a.NextAllocation != "" || a.FollowupEvalID != "" {
			again++
		}
	}
	text := ""
	if more := len(list) - 1; more > 0 {
		text = fmt.Sprintf(", and %d like it", more)
	}
	switch {
	case again == 0:
		return text
	case text == "":
		return " (it is tried again)"
	}
	if again == 1 {
		return text + " (1 is tried again)"
	}
	return text + fmt.Sprintf(" (%d are tried again)", again)
}

func (m *monitor) named(a *structs.AllocListStub) string {
	return fmt.Sprintf("%s %q on node %q", a.Name, short(a.ID, m.verbose), a.NodeName)
}

// trouble prints why something goes wrong as soon as it does: of each group the first
// instance with a task that has ended and is started again, and of many, which are only
// counted otherwise, the first that has failed.
func (m *monitor) trouble(allocs []*structs.AllocListStub) {
	first := func(a *structs.AllocListStub, what string) bool {
		key := [2]string{a.TaskGroup, what}
		known := m.shown[key]
		m.shown[key] = true
		return !known
	}
	for _, a := range allocs {
		if unwell(a) {
			if m.quiet && first(a, structs.AllocClientFailed) {
				m.line("Group %q: the first to fail is %s", a.TaskGroup, m.named(a)+because(a))
			}
			continue
		}
		if name := restarting(a); name != "" && first(a, structs.TaskRestarting) {
			m.line("Group %q: task %q of %s: %s", a.TaskGroup, name, m.named(a), whatHappened(a.TaskStates[name]))
		}
	}
}

// restarting names a task that has ended and waits to be started again; "": there is none.
func restarting(a *structs.AllocListStub) string {
	for _, name := range slices.Sorted(maps.Keys(a.TaskStates)) {
		if t := a.TaskStates[name]; t != nil && len(t.Events) > 0 {
			if last := t.Events[len(t.Events)-1]; last != nil && last.Type == structs.TaskRestarting {
				return name
			}
		}
	}
	return ""
}

func unwell(a *structs.AllocListStub) bool {
	return a.ClientStatus == structs.AllocClientFailed || a.ClientStatus == structs.AllocClientLost
}

// timedOut reports whether an allocation was ended at its time limit, though it is complete.
func timedOut(a *structs.AllocListStub) bool {
	return a.ClientStatus == structs.AllocClientComplete && a.ClientDescription == structs.DescMaxRunDuration
}

// statusText is an allocation's client status as tables show it: what reached its time limit may not be through, though it is complete.
func statusText(a *structs.AllocListStub) string {
	if timedOut(a) {
		return a.ClientStatus + " (time limit)"
	}
	return a.ClientStatus
}

// howEnded is what is put behind an allocation's status: why it failed, that it was ended at its time limit, or its exit code.
func howEnded(a *structs.AllocListStub) string {
	switch {
	case unwell(a):
		return because(a)
	case timedOut(a):
		return " (ended at its time limit, max_run_duration)"
	}
	return exitText(a)
}

// because is why an allocation failed, to be put behind its status: what its node
// states, and what happened last to a task of it. Empty: nobody knows.
func because(a *structs.AllocListStub) string {
	text := ""
	if a.ClientDescription != "" {
		text = ": " + a.ClientDescription
	}
	// A task that failed reveals more than its siblings, which were only killed for it.
	for _, failed := range []bool{true, false} {
		for _, name := range slices.Sorted(maps.Keys(a.TaskStates)) {
			if t := a.TaskStates[name]; t != nil && t.Failed == failed {
				message := lastMessage(t)
				if failed {
					message = whatHappened(t)
				}
				if message != "" {
					return fmt.Sprintf("%s; task %q: %s", text, name, message)
				}
			}
		}
	}
	return text
}

// whatHappened is what went wrong with a task last, and what was decided upon it.
func whatHappened(t *structs.TaskState) string {
	last := lastMessage(t)
	for _, ev := range slices.Backward(t.Events) {
		if ev == nil {
			continue
		}
		switch ev.Type {
		case structs.TaskTerminated, structs.TaskDriverFailure, structs.TaskSetupFailure, structs.TaskFailedValidation, structs.TaskRestoreFailed:
			if text := eventText(ev); text != "" && text != last {
				return text + "; " + last
			}
			return last
		}
	}
	return last
}

// lastMessage is the text of the last event that has one.
func lastMessage(t *structs.TaskState) string {
	for _, ev := range slices.Backward(t.Events) {
		if ev != nil && eventText(ev) != "" {
			return eventText(ev)
		}
	}
	return ""
}

// eventText is what an event states, in one line.
func eventText(ev *structs.TaskEvent) string {
	return strings.Join(strings.Fields(cmp.Or(ev.DisplayMessage, ev.Message, ev.DriverError)), " ")
}

// inNamespace is the flag that a suggested command needs to find a job of a namespace.
func inNamespace(namespace string) string {
	if namespace == "" || namespace == structs.DefaultNamespace {
		return ""
	}
	return "-namespace " + shellWord(namespace) + " "
}

// stopped prints why following ended early and returns the exit code. An interrupt ends
// only the following: it prints that, and how to stop the job.
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
