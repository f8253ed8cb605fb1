package alloc

import "github.com/nomadish/nomadish/structs"

// role is a task's part in its group.
type role int

const (
	roleMain role = iota
	rolePrestart
	rolePrestartSidecar
	rolePoststart
	rolePoststartSidecar
	rolePoststop
)

func roleOf(t *structs.Task) role {
	if t.Lifecycle == nil {
		return roleMain
	}
	switch t.Lifecycle.Hook {
	case structs.TaskLifecycleHookPrestart:
		if t.Lifecycle.Sidecar {
			return rolePrestartSidecar
		}
		return rolePrestart
	case structs.TaskLifecycleHookPoststart:
		if t.Lifecycle.Sidecar {
			return rolePoststartSidecar
		}
		return rolePoststart
	case structs.TaskLifecycleHookPoststop:
		return rolePoststop
	}
	return roleMain
}

func (r role) sidecar() bool { return r == rolePrestartSidecar || r == rolePoststartSidecar }

// view is where a task stands, as far as the others' order depends on it.
type view struct {
	role    role
	leader  bool
	waiting bool // not started yet
	running bool
	ran     bool // was running at least once
	dead    bool
	failed  bool // dead, and badly
}

// why a task is ended.
type why int

const (
	whyStop    why = iota // the allocation is
	whySibling            // another task failed
	whyLeader             // the leader ended
	whyMain               // a sidecar whose main tasks ended
	whyUnused             // a poststop task after nothing
)

// move starts or ends one task. Ending one that is being ended changes nothing.
type move struct {
	task  int
	start bool
	why   why
	from  int // whySibling: the task that failed
}

// halt reports whether the allocation is wanted stopped.
type halt int

const (
	haltNone halt = iota
	haltStop      // in order, with what comes after
	haltNow       // everything at once, poststop tasks too
)

// moves returns which tasks to start and to end now. It is called again after every
// change, until all are dead.
func moves(tasks []view, stop halt) []move {
	if stop == haltNow {
		var out []move
		for i, t := range tasks {
			if !t.dead {
				out = append(out, move{task: i, why: whyStop})
			}
		}
		return out
	}
	mainsLeft, leaderDead, failed := false, false, -1
	for i, t := range tasks {
		if t.role == roleMain && !t.dead {
			mainsLeft = true
		}
		if t.leader && t.dead {
			leaderDead = true
		}
		if failed < 0 && t.failed && t.role != rolePoststop {
			failed = i
		}
	}
	var out []move
	switch {
	case stop == haltStop:
		out = ending(tasks, whyStop, -1)
	case failed >= 0:
		out = ending(tasks, whySibling, failed)
	case leaderDead:
		out = ending(tasks, whyLeader, -1)
	case !mainsLeft:
		for i, t := range tasks {
			if t.role.sidecar() && !t.dead {
				out = append(out, move{task: i, why: whyMain})
			}
			if t.role == rolePoststart && t.waiting {
				out = append(out, move{task: i, start: true})
			}
		}
	default:
		out = starting(tasks)
	}
	return append(out, after(tasks)...)
}

// ending ends the tasks in their order: the leader, then the others, then the
// sidecars, each when those before it are dead. What never started goes at once.
func ending(tasks []view, reason why, from int) []move {
	tier := func(t view) int {
		switch {
		case t.leader:
			return 0
		case t.role.sidecar():
			return 2
		default:
			return 1
		}
	}
	lowest := 3
	for _, t := range tasks {
		if t.role != rolePoststop && !t.dead && !t.waiting {
			lowest = min(lowest, tier(t))
		}
	}
	var out []move
	for i, t := range tasks {
		if t.role == rolePoststop || t.dead {
			continue
		}
		if t.waiting || tier(t) == lowest {
			out = append(out, move{task: i, why: reason, from: from})
		}
	}
	return out
}

// starting starts what may start while the main tasks have not all ended.
func starting(tasks []view) []move {
	before, mains := true, true // the prestart tasks are done; the main ones ran
	for _, t := range tasks {
		switch t.role {
		case rolePrestart:
			before = before && t.dead
		case rolePrestartSidecar:
			before = before && (t.ran || t.dead)
		case roleMain:
			mains = mains && t.ran
		case rolePoststart, rolePoststartSidecar, rolePoststop: // they wait for these
		}
	}
	var out []move
	for i, t := range tasks {
		if !t.waiting {
			continue
		}
		switch t.role {
		case rolePrestart, rolePrestartSidecar:
			out = append(out, move{task: i, start: true})
		case roleMain:
			if before {
				out = append(out, move{task: i, start: true})
			}
		case rolePoststart, rolePoststartSidecar:
			if before && mains {
				out = append(out, move{task: i, start: true})
			}
		case rolePoststop:
		}
	}
	return out
}

// after starts the poststop tasks once all others are dead, if any of those ran.
func after(tasks []view) []move {
	ran := false
	for _, t := range tasks {
		if t.role == rolePoststop {
			continue
		}
		if !t.dead {
			return nil
		}
		ran = ran || t.ran
	}
	var out []move
	for i, t := range tasks {
		if t.role == rolePoststop && t.waiting {
			out = append(out, move{task: i, start: ran, why: whyUnused})
		}
	}
	return out
}
