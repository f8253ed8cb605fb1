package alloc

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// parseView reads a task as a word: role (m main, p prestart, P its sidecar, a
// poststart, A its sidecar, s poststop), then w waiting, r running, d dead, f
// failed; "!" at the end makes it the leader.
func parseView(word string) view {
	v := view{role: map[byte]role{
		'm': roleMain, 'p': rolePrestart, 'P': rolePrestartSidecar, 'a': rolePoststart, 'A': rolePoststartSidecar, 's': rolePoststop,
	}[word[0]]}
	switch word[1] {
	case 'w':
		v.waiting = true
	case 'r':
		v.running, v.ran = true, true
	case 'd':
		v.ran, v.dead = true, true
	case 'f':
		v.ran, v.dead, v.failed = true, true, true
	case 'k': // killed before it ran
		v.dead = true
	}
	v.leader = strings.HasSuffix(word, "!")
	return v
}

func TestMoves(t *testing.T) {
	whys := map[why]string{whyStop: "stop", whySibling: "sibling", whyLeader: "leader", whyMain: "main", whyUnused: "unused"}
	f := func(tasks string, stop halt, want string) {
		t.Helper()
		var views []view
		for _, w := range strings.Fields(tasks) {
			views = append(views, parseView(w))
		}
		var got []string
		for _, m := range moves(views, stop) {
			if m.start {
				got = append(got, fmt.Sprintf("+%d", m.task))
			} else {
				got = append(got, fmt.Sprintf("-%d:%s", m.task, whys[m.why]))
			}
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%s (halt %d): got %q, want %q", tasks, stop, g, want)
		}
	}
	f("mw mw", haltNone, "+0 +1")
	f("mr mw", haltNone, "+1")
	f("mr md", haltNone, "")
	f("md md", haltNone, "")
	// Prestart tasks come first; a sidecar only has to run.
	f("mw pw Pw", haltNone, "+1 +2")
	f("mw pr Pr", haltNone, "")
	f("mw pd Pr", haltNone, "+0")
	f("mw pd Pw", haltNone, "+2")
	// Poststart tasks when the main ones ran.
	f("mr mw aw", haltNone, "+1")
	f("mr mr aw Aw", haltNone, "+2 +3")
	f("md aw", haltNone, "+1")
	// Sidecars end when the main tasks have, poststop tasks run after everything.
	f("md Pr Ar sw", haltNone, "-1:main -2:main")
	f("md ar sw", haltNone, "")
	f("md Pd ad sw", haltNone, "+3")
	f("md sr", haltNone, "")
	// A failure ends the others, the leader's end too.
	f("mf mr mw Pr", haltNone, "-1:sibling -2:sibling")
	f("mf md Pr", haltNone, "-2:sibling")
	f("md! mr mr", haltNone, "-1:leader -2:leader")
	f("md mr!", haltNone, "")
	f("pf mw", haltNone, "-1:sibling")
	f("pf mk sw", haltNone, "+2")
	f("md sf", haltNone, "")
	// Stopping: the leader, the others, the sidecars, then poststop.
	f("mr! mr Pr sw", haltStop, "-0:stop")
	f("md! mr Pr sw", haltStop, "-1:stop")
	f("md! md Pr sw", haltStop, "-2:stop")
	f("md! md Pd sw", haltStop, "+3")
	f("mw mw sw", haltStop, "-0:stop -1:stop")
	f("mk mk sw", haltStop, "-2:unused")
	f("mr! mr Pr sw", haltNow, "-0:stop -1:stop -2:stop -3:stop")
}

// However tasks end, following the moves ends every allocation, and never starts a
// main task before its prestart tasks.
func TestMovesAlwaysEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "tasks")
		views := make([]view, n)
		for i := range views {
			views[i] = view{role: role(rapid.IntRange(0, 5).Draw(t, "role")), waiting: true}
		}
		views[0].role = roleMain
		views[0].leader = rapid.Bool().Draw(t, "leader")
		stop := haltNone
		for range 200 {
			for _, m := range moves(views, stop) {
				v := &views[m.task]
				switch {
				case m.start && v.waiting:
					for _, o := range views {
						if v.role == roleMain && o.role == rolePrestart && !o.dead {
							t.Fatalf("a main task is started before a prestart task is done")
						}
						if v.role == rolePoststop && o.role != rolePoststop && !o.dead {
							t.Fatalf("a poststop task is started before the others are dead")
						}
					}
					v.waiting, v.running, v.ran = false, true, true
				case m.start:
					t.Fatalf("a task that does not wait is started")
				default:
					v.waiting, v.running, v.dead = false, false, true
				}
			}
			left := false
			for i := range views {
				if views[i].running && (views[i].role == rolePoststop || rapid.IntRange(0, 3).Draw(t, "exit") == 0) {
					views[i].running, views[i].dead = false, true
					views[i].failed = rapid.IntRange(0, 3).Draw(t, "failed") == 0
				}
				left = left || !views[i].dead
			}
			if !left {
				return
			}
			if rapid.IntRange(0, 20).Draw(t, "stop") == 0 {
				stop = haltStop
			}
		}
		stop = haltStop
		for range 4 * n {
			for _, m := range moves(views, stop) {
				views[m.task] = view{role: views[m.task].role, dead: true, ran: m.start || views[m.task].ran}
			}
			for i := range views {
				if views[i].role == rolePoststop && views[i].running {
					views[i] = view{role: rolePoststop, dead: true, ran: true}
				}
			}
		}
		for i, v := range views {
			if !v.dead {
				t.Fatalf("task %d is not dead: %+v", i, v)
			}
		}
	})
}
