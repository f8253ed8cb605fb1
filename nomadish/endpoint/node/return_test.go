package node

import (
	"context"
	"testing"
	"time"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/structs"
)

// entries keeps what would be committed.
type entries struct{ all []any }

func (e *entries) Apply(_ context.Context, _ structs.LogType, entry any) (uint64, error) {
	e.all = append(e.all, entry)
	return 1, nil
}

// A node that is heard again says so among its events, whatever it was taken for meanwhile.
func TestANodesReturnIsAnEvent(t *testing.T) {
	for status, want := range map[string]string{
		structs.NodeStatusDown: "Node heartbeats again", structs.NodeStatusDisconnected: "Node heartbeats again", structs.NodeStatusInit: "",
	} {
		s := newSite(t, &structs.Node{ID: "n", SecretID: "s", Name: "n", Status: status})
		log := &entries{}
		s.Applier, s.Heartbeats, s.NewID = log, endpointtest.Alone{}, func() string { return "seed" }
		s.Now = func() time.Time { return time.Unix(7, 0) }
		if _, err := s.heartbeat(t.Context(), &structs.NodeHeartbeatRequest{NodeID: "n", SecretID: "s"}); err != nil || len(log.all) != 1 {
			t.Fatalf("of a node that was %s: %v, %v", status, log.all, err)
		}
		entry := log.all[0].(*structs.NodeStatusEntry)
		got := ""
		if entry.Event != nil {
			got = entry.Event.Message
		}
		if entry.Status != structs.NodeStatusReady || got != want {
			t.Errorf("of a node that was %s: status %s, event %q, want %q", status, entry.Status, got, want)
		}
	}
}
