package command

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// suspended is an allocation with the statuses given.
func suspended(desired, client, description string) *structs.Allocation {
	a := webAlloc(allocA, client)
	a.DesiredStatus, a.ClientDescription = desired, description
	return a
}

func TestAllocSuspend(t *testing.T) {
	f := cluster(t).on("PUT /v1/client/allocation/"+allocA+"/suspend", &structs.AllocStopReply{})
	f.answers["GET /v1/allocation/"+allocA] = []any{
		suspended("suspend", structs.AllocClientRunning, "Tasks are running"), suspended("suspend", structs.AllocClientSuspended, "Tasks are suspended"),
	}
	got := f.run(t, "alloc", "suspend", "5f3a9c01")
	if got.code != exitDone {
		t.Fatalf("exit code %d, stderr %q", got.code, got.err)
	}
	wants(t, got.out, "is suspended (Tasks are suspended)")
	f.answers["GET /v1/allocation/"+allocA] = []any{suspended("suspend", structs.AllocClientFailed, "stopped: not all its tasks can be suspended")}
	if got = f.run(t, "alloc", "suspend", "5f3a9c01"); got.code != exitFailed {
		t.Errorf("of one that cannot be: exit code %d: %s", got.code, got.out)
	}
	if got = f.run(t, "alloc", "suspend", "-detach", "5f3a9c01"); got.code != exitDone || got.out != "" {
		t.Errorf("detached: exit code %d: %q", got.code, got.out)
	}
}

func TestAllocResume(t *testing.T) {
	f := cluster(t).on("PUT /v1/client/allocation/"+allocA+"/resume", &structs.AllocStopReply{EvalID: evalA})
	f.answers["GET /v1/allocation/"+allocA] = []any{
		suspended("run", structs.AllocClientSuspended, "Tasks are suspended"),
		suspended("run", structs.AllocClientSuspended, "Waiting for allocation 12345678 to release its resources"),
		suspended("run", structs.AllocClientRunning, "Tasks are running"),
	}
	got := f.run(t, "alloc", "resume", "5f3a9c01")
	if got.code != exitDone {
		t.Fatalf("exit code %d, stderr %q", got.code, got.err)
	}
	wants(t, got.out, "Waiting for allocation 12345678 to release its resources")
	wants(t, got.out, "is running")
	f.answers["GET /v1/evaluation/"+evalA] = []any{unplaced(webEval(evalA, structs.EvalStatusComplete))}
	f.answers["GET /v1/allocation/"+allocA] = []any{suspended("suspend", structs.AllocClientSuspended, "Tasks are suspended")}
	if got = f.run(t, "alloc", "resume", "5f3a9c01"); got.code != exitIncomplete {
		t.Errorf("without room: exit code %d: %s", got.code, got.err)
	}
	wants(t, got.out, `Dimension "memory" exhausted`)
	wants(t, got.out, `stays suspended until there is room for it on node "gpu-1"`)
	if got = f.run(t, "alloc", "resume", "-detach", "5f3a9c01"); got.code != exitDone || !strings.Contains(got.out, evalA) {
		t.Errorf("detached: exit code %d: %q", got.code, got.out)
	}
}

func TestAllocSuspendRefuses(t *testing.T) {
	f := cluster(t).on("PUT /v1/client/allocation/"+allocA+"/resume", refusal{400, "allocation 5f3a9c01: it is not suspended"})
	for _, bad := range []string{"suspend", "resume a b", "resume 9999", "resume 5f3a9c01"} {
		if got := f.run(t, strings.Fields("alloc "+bad)...); got.code != exitFailed || got.err == "" {
			t.Errorf("%q: exit code %d, output %q", bad, got.code, got.out)
		}
	}
}
