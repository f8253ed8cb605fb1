package whatif

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// TestTooLarge: changes that are larger than may be are refused before they are decoded, and no what-if runs.
func TestTooLarge(t *testing.T) {
	s := endpointtest.New(t)
	mux := wire.NewMux(hclog.NewNullLogger(), 0)
	rpc.Register(mux, New(Deps{Router: s.Router, Now: time.Now}))
	ours, theirs := net.Pipe()
	server, err := wire.Server(theirs, wire.Config{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); mux.Serve(t.Context(), server) }()
	session, err := wire.Client(ours, wire.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close(); <-done })
	req := &structs.WhatIfRequest{Changes: []*structs.WhatIfChange{{Text: strings.Repeat("x", maxBytes), Lose: "n"}}}
	err = session.Call(t.Context(), wire.MethodWhatIf, req, &structs.WhatIfReply{})
	if structs.CodeOf(err) != structs.CodeBadRequest || !strings.Contains(err.Error(), "state fewer changes at once") {
		t.Errorf("%v", err)
	}
}

// TestWhatIf: a what-if is answered with the index of the state, commits nothing, and is refused while as many run as may.
func TestWhatIf(t *testing.T) {
	s := endpointtest.New(t, testcluster.Node(endpointtest.ID(1), 1000))
	e := New(Deps{Router: s.Router, Now: time.Now})
	mux := wire.NewMux(hclog.NewNullLogger(), 0)
	rpc.Register(mux, e)
	index, hash := s.Store.LatestIndex(), s.Store.Snapshot().Hash()
	request := func(node string) (*structs.WhatIf, error) {
		var reply structs.WhatIfReply
		err := mux.Local(t.Context(), wire.MethodWhatIf, &structs.WhatIfRequest{Changes: []*structs.WhatIfChange{{Lose: node}}}, &reply)
		return reply.WhatIf, err
	}
	w, err := request(endpointtest.ID(1))
	if err != nil || w.Index != index || len(w.Changes) != 1 {
		t.Fatalf("%v: %+v", err, w)
	}
	if _, err := request("nowhere"); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("a node that is not there: %v", err)
	}
	begin := time.Now().Add(-time.Hour).UnixNano()
	for _, at := range []int64{begin, 1} {
		var reply structs.WhatIfReply
		err := mux.Local(t.Context(), wire.MethodWhatIf, &structs.WhatIfRequest{Changes: []*structs.WhatIfChange{{Lose: endpointtest.ID(1)}}, Time: at}, &reply)
		if at == begin && (err != nil || reply.WhatIf.Time != at) || at != begin && (structs.CodeOf(err) != structs.CodeBadRequest || !strings.Contains(err.Error(), "must be within 24h")) {
			t.Errorf("at %d: %+v, %v", at, reply.WhatIf, err)
		}
	}
	if snap := s.Store.Snapshot(); snap.Index() != index || snap.Hash() != hash {
		t.Errorf("the state was at index %d, and is at %d", index, snap.Index())
	}
	for range maxRunning {
		e.running <- struct{}{}
	}
	if _, err := request(endpointtest.ID(1)); structs.CodeOf(err) != structs.CodeLimited || !strings.Contains(err.Error(), "2 what-ifs run on this server already") {
		t.Errorf("one too many: %v", err)
	}
}
