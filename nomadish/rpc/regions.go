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
	// which they are to be called.
	Servers(region string) []string
}

const (
	// farDial bounds the wait for a connection to one server of another region.
	farDial = 4 * time.Second
	// farTries bounds how many servers of a region are tried.
	farTries = 3
)

// InRegion registers a method that any server of the requested region answers for itself.
func InRegion[A, R any](r *Router, f func(ctx context.Context, args *A) (*R, error)) wire.Handler {
	return r.Regional(true, wire.Unary(f))
}

// OwnRegion keeps a method to this server's own region: a call that names another is refused. Nodes
// belong to the region whose servers they are connected to.
func (r *Router) OwnRegion(allowed wire.Handler) wire.Handler {
	return func(ctx context.Context, call *wire.Call) error {
		routing, err := call.Routing()
		if err != nil {
			return err
		}
		if routing.Region != "" && routing.Region != r.Region {
			return structs.Errorf(structs.CodeBadRequest, "%s: region %q: this server is of region %q, and passes this on to no other", call.Method, routing.Region, r.Region).
				WithHint("an agent's region and that of the servers it names must be the same")
		}
		return allowed(ctx, call)
	}
}

// Regional passes a call on that is for another region, and has here answer the others.
func (r *Router) Regional(isRead bool, here wire.Handler) wire.Handler {
	return func(ctx context.Context, call *wire.Call) error {
		routing, err := call.Routing()
		if err != nil {
			return err
		}
		if routing.Region == "" || routing.Region == r.Region {
			return here(ctx, call)
		}
		return r.toRegion(ctx, call, isRead, routing.Region)
	}
}

// toRegion passes a call on to a server of another region, which sees to its own leader. Servers are
// tried one after the other for as long as nothing can have come of the call.
func (r *Router) toRegion(ctx context.Context, call *wire.Call, isRead bool, region string) error {
	if call.Via != "" { // whoever passed it on is wrong about us; it must not go round
		return structs.Errorf(structs.CodeNoRegion, "a call for region %q was passed on to server %s, which is of region %q", region, r.Name, r.Region).
			WithHint("are two clusters joined that have servers at the same addresses?")
	}
	addrs, err := r.path(region)
	if err != nil {
		return err
	}
	var lost []string
	code := structs.CodeNoRegion
	for _, addr := range addrs[:min(len(addrs), farTries)] {
		err := r.farOnce(ctx, call, isRead, region, addr)
		var again *notYet
		if !errors.As(err, &again) {
			return err
		}
		lost = append(lost, again.why.Error())
		code = structs.CodeOf(again.why)
	}
	return structs.Errorf(code, "region %q: %s", region, strings.Join(lost, "; ")).WithHint("the region may be lost, or the line to it; try again")
}

// path returns the servers of another region that a call can go to.
func (r *Router) path(region string) ([]string, error) {
	known := []string{r.Region}
	if r.Regions != nil {
		if addrs := r.Regions.Servers(region); len(addrs) > 0 {
			return addrs, nil
		}
		known = r.Regions.Known()
	}
	if slices.Contains(known, region) { // in Nomad's words, which programs look for
		return nil, structs.Errorf(structs.CodeNoRegion, "No path to region %q: it is known, but none of its servers can be reached", region).
			WithHint("the region may be lost, or the line to it; `server members` shows what is known")
	}
	return nil, structs.Errorf(structs.CodeNoRegion, "No path to region %q: it is not known; known are %s", region, strings.Join(known, ", "))
}

// farOnce passes a call on to one server of another region; a *notYet means that nothing has come of it.
func (r *Router) farOnce(ctx context.Context, call *wire.Call, isRead bool, region, addr string) error {
	session, err := r.farSession(ctx, region, addr)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return &notYet{structs.Errorf(structs.CodeNoRegion, "server %s: %w", addr, err)}
	}
	err = call.Relay(ctx, session, wire.ViaRegion, func(refusal *structs.Error) bool { return refusal.Code == structs.CodeNotLeader })
	var refusal *structs.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &refusal) && refusal.Code == structs.CodeNotLeader:
		return &notYet{structs.Errorf(structs.CodeNoLeader, "server %s: %s", addr, refusal.Msg)}
	case call.Answered(), !errors.Is(err, wire.ErrSessionClosed):
		return fmt.Errorf("region %q: %w", region, err)
	case isRead:
		return &notYet{structs.Errorf(structs.CodeNoRegion, "server %s was lost before it answered", addr)}
	}
	return structs.Errorf(structs.CodeNoRegion, "region %q: server %s was lost before it answered", region, addr).
		WithHint("the request may have been applied; check before retrying")
}

// farSession reaches a server of another region. The first to dial may give up on it for reasons of its
// own; whoever waited for the same connection then dials.
func (r *Router) farSession(ctx context.Context, region, addr string) (*wire.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, farDial)
	defer cancel()
	for {
		session, err := r.Far.SessionIn(ctx, region, addr)
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.Canceled) {
			return session, err
		}
	}
}
