package nomadish

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/structs"
)

// weekChange is a week of two projects that ends in a moment, and the one that follows.
type weekChange struct {
	f           *fleet
	edge        time.Time
	chip, board string
}

// newWeekChange edits the calendars of two new projects, of which one has 3 slots and the other 1 until the edge, and then the other way round. Log
// entries state when weeks begin, so that a week may begin when a test needs it.
func newWeekChange(f *fleet, round int) *weekChange {
	f.t.Helper()
	now := time.Now()
	w := &weekChange{f: f, edge: now.Add(4 * time.Second), chip: fmt.Sprint("chip-", round), board: fmt.Sprint("board-", round)}
	leader := f.all[f.leader()]
	put := func(kind structs.LogType, payload any) {
		f.t.Helper()
		if _, err := leader.raft.Apply(f.t.Context(), kind, payload); err != nil {
			f.t.Fatal(err)
		}
	}
	for _, name := range []string{w.chip, w.board} {
		put(structs.LogProjectUpsert, &structs.ProjectUpsertEntry{Project: &structs.Project{Name: name}, Time: now.UnixNano()})
		counts := [2]int{3, 1}
		if name == w.board {
			counts = [2]int{1, 3}
		}
		from := now.Add(-time.Second)
		for i, to := range []time.Time{w.edge, w.edge.Add(time.Hour)} {
			put(structs.LogProjectCalendar, &structs.ProjectCalendarEntry{Time: now.UnixNano(), Week: &structs.ProjectWeek{
				Project: name, Week: fmt.Sprintf("2026-W%02d", 48+i), Rows: []structs.CalendarRow{{Type: structs.SlotBatch, Count: counts[i]}},
				From: from.UnixNano(), To: to.UnixNano(),
			}})
			from = to
		}
	}
	return w
}

// given returns the slots that both projects have now, as a server knows it.
func (w *weekChange) given(s *Server) string {
	book := s.store.Snapshot().World().Slots()
	if book == nil || book.Account(w.chip) == nil || book.Account(w.board) == nil {
		return "none"
	}
	return fmt.Sprint(book.Account(w.chip).Given(structs.SlotBatch), book.Account(w.board).Given(structs.SlotBatch))
}

// everywhere waits until all servers that run know of these slots.
func (w *weekChange) everywhere(want string) {
	w.f.t.Helper()
	within(w.f.t, 30*time.Second, "the slots "+want, func(context.Context) error {
		for _, s := range w.f.up() {
			if got := w.given(s); got != want {
				return fmt.Errorf("%s: %s", s.cfg.Name, got)
			}
		}
		return nil
	})
}

// changes returns when the log entries of a server moved time on, from the edge on.
func (w *weekChange) changes(s *Server) (at []time.Duration) {
	w.f.t.Helper()
	last := s.store.Snapshot().Index()
	for index := uint64(1); index <= last; index++ {
		var entry raft.Log
		if err := s.raft.Entry(index, &entry); err != nil {
			w.f.t.Fatal(err)
		}
		if entry.Type != raft.LogCommand {
			continue
		}
		_, payload, err := fsm.Decode(entry.Data)
		if err != nil {
			w.f.t.Fatal(err)
		}
		if entry, ok := payload.(*structs.ClaimsTimeEntry); ok && entry.Now >= w.edge.UnixNano() {
			at = append(at, time.Unix(0, entry.Now).Sub(w.edge))
		}
	}
	return at
}

// TestWeekBeginsWithoutLeader: the leader is lost when a week begins, a little before or after: the slots change hands all the same, without an
// operator, and one entry changes the week, once.
func TestWeekBeginsWithoutLeader(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, nil)
	node := &structs.Node{ID: nodeID, SecretID: "s", Name: "n", NodePool: structs.NodePoolDefault, Status: structs.NodeStatusReady, NodeResources: &structs.NodeResources{
		Slots: map[string]int{structs.SlotBatch: 100},
	}}
	if _, err := f.all[f.leader()].raft.Apply(t.Context(), structs.LogNodeRegister, &structs.NodeRegisterEntry{Node: node, Time: time.Now().UnixNano(), EvalSeed: "s"}); err != nil {
		t.Fatal(err)
	}
	for round, off := range []time.Duration{-20 * time.Millisecond, 0, time.Millisecond, 5 * time.Millisecond} {
		w := newWeekChange(f, round)
		w.everywhere("3 1")
		lost := f.leader()
		time.Sleep(time.Until(w.edge.Add(off)))
		f.crash(lost)
		w.everywhere("1 3")
		late := w.changes(f.up()[0])
		f.run(lost)
		f.formed(3)
		w.everywhere("1 3")
		for _, s := range f.all {
			if changes := w.changes(s); len(changes) != 1 || changes[0] != late[0] {
				t.Errorf("lost %s from the edge: %s has %v, not one entry after %v", off, s.cfg.Name, changes, late)
			}
		}
		t.Logf("lost %s from the edge: the week began after %s", off, late)
	}
	within(t, 20*time.Second, "equal states", func(context.Context) error {
		first := f.all[0].store.Snapshot()
		for _, s := range f.all[1:] {
			if snap := s.store.Snapshot(); snap.Hash() != first.Hash() {
				return fmt.Errorf("%s at %d differs from %s at %d", s.cfg.Name, snap.Index(), f.all[0].cfg.Name, first.Index())
			}
		}
		return nil
	})
}
