package operator

import (
	"testing"
	"time"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// forsaken is a server that knows no leader, and heard one 65 s ago.
type forsaken struct{ endpointtest.Alone }

func (forsaken) Leader() rpc.LeaderInfo     { return rpc.LeaderInfo{} }
func (forsaken) IsLeader() bool             { return false }
func (forsaken) LastContact() time.Duration { return 65 * time.Second }

// What a server answers by itself says how long it has heard no leader.
func TestAnswersReportHowOldTheyMayBe(t *testing.T) {
	s := newSite(t)
	s.Router.Leadership, s.Router.Cluster = forsaken{}, endpointtest.Three{}
	f := func(what string, meta structs.QueryMeta, err error) {
		t.Helper()
		if err != nil || meta.KnownLeader || meta.LastContact != 65*time.Second {
			t.Errorf("%s: %+v, %v", what, meta, err)
		}
	}
	check, err := s.check(t.Context(), &structs.CheckRequest{})
	f("check", check.QueryMeta, err)
	conf, err := s.raftConfig(t.Context(), &structs.EmptyRequest{})
	f("raft configuration", *conf.Meta, err)
	nodes := &structs.NodeListReply{}
	err = s.Router.Query(t.Context(), &structs.QueryOptions{}, &nodes.QueryMeta, func(*state.WatchSet, *state.Snapshot) (uint64, error) { return 1, nil })
	f("a query", nodes.QueryMeta, err)
}
