package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// Regions is who serves other regions, as this server knows by gossip.
type Regions interface {
	// Known are the regions of which a server was seen, the own one among them, in order.
	Known() []string
	// Servers are the RPC addresses of a region's servers that are there, in the order in
	// which they are to be asked.
	Servers(region string) []string
	// Members are the servers of other regions, failed ones too.
	Members() []structs.ServerMember
	Join(addrs []string) (reached int, err error)
	ForceLeave(name string, prune bool) error
}

const (
	// farDial bounds the wait for a connection to one server of another region.
	farDial = 4 * time.Second
	// farTries bounds how many servers of a region are tried.
	farTries = 3
)

// inRegion registers a method that any server of the region asked for answers for itself.
func inRegion[A, R any](e *Endpoints, f func(ctx context.Context, args *A) (*R, error)) wire.Handler {
	return e.regional(true, wire.Unary(f))
}

// ownRegion keeps a method to this server's own region: a call that names another is refused. Nodes
// belong to the region whose servers they are connected to.
func ownRegion(e *Endpoints, allowed wire.Handler) wire.Handler {
	return func(ctx context.Context, call *wire.Call) error {
		r, err := call.Routing()
		if err != nil {
			return err
		}
		if r.Region != "" && r.Region != e.Region {
			return structs.Errorf(structs.CodeBadRequest, "%s: region %q: this server is of region %q, and passes this on to no other", call.Method, r.Region, e.Region).
				WithHint("an agent's region and that of the servers it names must be the same")
		}
		return allowed(ctx, call)
	}
}

// regional passes a call on that is for another region, and has here answer the others.
func (e *Endpoints) regional(isRead bool, here wire.Handler) wire.Handler {
	return func(ctx context.Context, call *wire.Call) error {
		r, err := call.Routing()
		if err != nil {
			return err
		}
		if r.Region == "" || r.Region == e.Region {
			return here(ctx, call)
		}
		return e.toRegion(ctx, call, isRead, r.Region)
	}
}

// toRegion passes a call on to a server of another region, which sees to its own leader. Servers are
// tried one after the other for as long as nothing can have come of the call.
func (e *Endpoints) toRegion(ctx context.Context, call *wire.Call, isRead bool, region string) error {
	if call.Via != "" { // whoever passed it on is wrong about us; it must not go round
		return structs.Errorf(structs.CodeNoRegion, "a call for region %q was passed on to server %s, which is of region %q", region, e.Name, e.Region).
			WithHint("are two clusters joined that have servers at the same addresses?")
	}
	addrs, err := e.path(region)
	if err != nil {
		return err
	}
	var lost []string
	code := structs.CodeNoRegion
	for _, addr := range addrs[:min(len(addrs), farTries)] {
		err := e.farOnce(ctx, call, isRead, region, addr)
		var again *notYet
		if !errors.As(err, &again) {
			return err
		}
		lost = append(lost, again.why.Error())
		code = structs.CodeOf(again.why)
	}
	return structs.Errorf(code, "region %q: %s", region, strings.Join(lost, "; ")).WithHint("the region may be lost, or the line to it; try again")
}

// path gives the servers of another region that a call can go to.
func (e *Endpoints) path(region string) ([]string, error) {
	known := []string{e.Region}
	if e.Regions != nil {
		if addrs := e.Regions.Servers(region); len(addrs) > 0 {
			return addrs, nil
		}
		known = e.Regions.Known()
	}
	if slices.Contains(known, region) { // in Nomad's words, which programs look for
		return nil, structs.Errorf(structs.CodeNoRegion, "No path to region %q: it is known, but none of its servers can be reached", region).
			WithHint("the region may be lost, or the line to it; `server members` shows what is known")
	}
	return nil, structs.Errorf(structs.CodeNoRegion, "No path to region %q: it is not known; known are %s", region, strings.Join(known, ", "))
}

// farOnce passes a call on to one server of another region; a *notYet says that nothing has come of it.
func (e *Endpoints) farOnce(ctx context.Context, call *wire.Call, isRead bool, region, addr string) error {
	session, err := e.farSession(ctx, region, addr)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return &notYet{structs.Errorf(structs.CodeNoRegion, "server %s: %w", addr, err)}
	}
	err = call.Relay(ctx, session, wire.ViaRegion, func(e *structs.Error) bool { return e.Code == structs.CodeNotLeader })
	var said *structs.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &said) && said.Code == structs.CodeNotLeader:
		return &notYet{structs.Errorf(structs.CodeNoLeader, "server %s: %s", addr, said.Msg)}
	case call.Answered(), !errors.Is(err, wire.ErrSessionClosed):
		return fmt.Errorf("region %q: %w", region, err)
	case isRead:
		return &notYet{structs.Errorf(structs.CodeNoRegion, "server %s was lost before it answered", addr)}
	}
	return structs.Errorf(structs.CodeNoRegion, "region %q: server %s was lost before it answered", region, addr).
		WithHint("whether it was done is not known: look, then try again")
}

// farSession reaches a server of another region. Who dials first may give up on it for reasons of its
// own; whoever waited for the same connection then dials.
func (e *Endpoints) farSession(ctx context.Context, region, addr string) (*wire.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, farDial)
	defer cancel()
	for {
		session, err := e.Far.SessionIn(ctx, region, addr)
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.Canceled) {
			return session, err
		}
	}
}
