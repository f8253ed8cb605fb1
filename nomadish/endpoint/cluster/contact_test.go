package cluster

import (
	"testing"
	"time"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// forsaken is a server that knows no leader, and heard one 65 s ago.
type forsaken struct{ endpointtest.Alone }

func (forsaken) Leader() rpc.LeaderInfo     { return rpc.LeaderInfo{} }
func (forsaken) IsLeader() bool             { return false }
func (forsaken) LastContact() time.Duration { return 65 * time.Second }

// What a server answers by itself says how long it has heard no leader.
func TestPeersReportHowOldTheyMayBe(t *testing.T) {
	s := endpointtest.New(t)
	s.Router.Leadership, s.Router.Cluster = forsaken{}, endpointtest.Three{}
	peers, err := New(Deps{Router: s.Router}).peers(t.Context(), &structs.EmptyRequest{})
	if err != nil || peers.KnownLeader || peers.LastContact != 65*time.Second || len(peers.Values) != 3 {
		t.Errorf("%+v, %v", peers, err)
	}
}
