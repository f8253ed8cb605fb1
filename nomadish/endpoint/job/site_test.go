package job

import (
	"testing"
	"time"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// site is a state with the endpoint over it.
type site struct {
	*endpointtest.Site
	*Endpoint
}

func newSite(t *testing.T, nodes ...*structs.Node) *site {
	t.Helper()
	s := endpointtest.New(t, nodes...)
	return &site{s, New(Config{}, Deps{Parts: rpc.Parts{Router: s.Router, Now: time.Now}})}
}
