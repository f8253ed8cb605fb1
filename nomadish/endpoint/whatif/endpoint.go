// Package whatif answers the RPC method that states what would become of the queue if changes were made. It must never write: what it changes is a fork of
// the state.
package whatif

import (
	"context"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/whatif"
	"github.com/nomadish/nomadish/structs"
)

// Limits of what-ifs, so that they leave a server its cores and its memory.
const (
	// maxRunning is how many run at once. Another one is refused: it would take its caller longer than to try again.
	maxRunning = 2
	// maxTime is how long one may take. Futures that are not through by then state where they end.
	maxTime = time.Minute
	// maxApart is how far the time that one states may be from the server's.
	maxApart = 24 * time.Hour
	// maxBytes bounds the changes of one.
	maxBytes = 16 << 20
)

// Deps are the parts that the endpoint works with.
type Deps struct {
	Router *rpc.Router
	// Rules are those of this server that changes have to keep.
	Rules whatif.Rules
	Now   func() time.Time
}

// Endpoint answers what-ifs.
type Endpoint struct {
	Deps
	running chan struct{} // a slot for each that runs
}

// New returns a new endpoint.
func New(d Deps) *Endpoint { return &Endpoint{d, make(chan struct{}, maxRunning)} }

// Methods returns the table of the methods that the endpoint answers.
func (e *Endpoint) Methods() []rpc.Method {
	return []rpc.Method{
		{Name: wire.MethodWhatIf, Handler: rpc.InRegion(e.Router, e.whatIf), MaxBytes: maxBytes, Hint: "state fewer changes at once"},
	}
}

// whatIf runs the state of this server on, which may be behind the leader's by some entries: the answer states of which index it is.
func (e *Endpoint) whatIf(ctx context.Context, args *structs.WhatIfRequest) (*structs.WhatIfReply, error) {
	select {
	case e.running <- struct{}{}:
		defer func() { <-e.running }()
	default:
		return nil, structs.Errorf(structs.CodeLimited, "%d what-ifs run on this server already, which is as many as may at once", maxRunning).
			WithHint("try again in a moment, or run it on a snapshot: `nomadish operator snapshot save FILE`, `nomadish what-if -snapshot FILE`")
	}
	begin := e.Now()
	if args.Time != 0 {
		at := time.Unix(0, args.Time)
		if at.Sub(begin).Abs() > maxApart {
			return nil, structs.Errorf(structs.CodeBadRequest, "time %s: must be within %s of that of the server, %s",
				at.UTC().Format(time.RFC3339), maxApart, begin.UTC().Format(time.RFC3339)).WithHint("state no time: the what-if begins now")
		}
		begin = at
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	w, err := whatif.Run(ctx, e.Router.Store, args, whatif.Options{Now: begin, Rules: e.Rules})
	if err != nil {
		return nil, err
	}
	return &structs.WhatIfReply{WhatIf: w, QueryMeta: e.Router.Contact(w.Index)}, nil
}
