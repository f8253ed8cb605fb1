package client

import (
	"testing"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// Without a server a client answers what is about its own allocations and its own node, and nothing else.
func TestLocalCalls(t *testing.T) {
	r := newRig(t).start()
	id := r.c.NodeID()
	a := r.s.place(id, job("a", structs.JobTypeService, fake("main", nil)), 0, nil)
	r.s.untilStatus(a.ID, structs.AllocClientRunning)
	own, far := structs.QueryOptions{Region: r.config.Region}, structs.QueryOptions{Region: "far"}
	for _, c := range []struct {
		what string
		args any
		want bool
	}{
		{"files", &structs.FSRequest{AllocID: a.ID, QueryOptions: own}, true},
		{"files of another allocation", &structs.FSRequest{AllocID: structs.FormatUUID([16]byte{1}, 4), QueryOptions: own}, false},
		{"files in another region", &structs.FSRequest{AllocID: a.ID, QueryOptions: far}, false},
		{"a restart", &structs.ClientAllocRequest{AllocID: a.ID}, true},
		{"a restart in another region", &structs.ClientAllocRequest{AllocID: a.ID, QueryOptions: far}, false},
		{"the node", &structs.ClientHostStatsRequest{NodeID: id}, true},
		{"no node", &structs.ClientHostStatsRequest{}, false},
		{"another node", &structs.ClientHostStatsRequest{NodeID: a.ID}, false},
		{"the node's simulated health", &structs.SimHealthRequest{NodeID: id}, true},
		{"something else", &structs.ListRequest{}, false},
	} {
		if got := r.c.Serves(c.args); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
	r.s.close()
	var list structs.FSListReply
	if err := r.c.Call(t.Context(), wire.MethodClientFSList, &structs.FSRequest{AllocID: a.ID, Path: "/"}, &list); err != nil || len(list.Files) == 0 {
		t.Errorf("the files: %v, %v", list.Files, err)
	}
	from, err := r.c.Stream(t.Context(), wire.MethodClientFSRead, &structs.FSRequest{AllocID: a.ID, Path: "nowhere"})
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	if err := from.Recv(&structs.StreamFrame{}); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("a file that is not there: %v", err)
	}
	for _, name := range r.c.mux.Methods() {
		if _, ok := wire.MethodNamed(name); !ok {
			t.Errorf("%s is not in the table of methods", name)
		}
	}
}
