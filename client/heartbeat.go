package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// How a node is kept alive: a heartbeat goes out at between half and 7/10 of the
// time that the servers give, so that one that is lost can be sent again in time.
const (
	heartbeatEarliest = 0.5
	heartbeatSpread   = 0.2
	defaultTTL        = 5 * time.Second
	minHeartbeatLimit = time.Second
	maxHeartbeatLimit = 10 * time.Second
	retryFirst        = 50 * time.Millisecond
	retryMost         = 2 * time.Second
	quietFailures     = 2 * time.Second // without an answer before it is logged
	troubleEvery      = time.Minute     // between two lines that report the same trouble
)

// keepAlive registers the node and sends its heartbeats until ctx ends.
func (n *node) keepAlive(ctx context.Context) {
	ttl, retry, registered := defaultTTL, retryFirst, false
	last := time.Now() // when a server last answered
	failing := &trouble{node: n}
	for {
		reply, err := n.beat(ctx, registered, ttl)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			n.gossip.missed(err)
			failing.log(err, registered, time.Since(last))
			if errors.Is(err, structs.ErrNotFound) {
				registered = false
			}
			n.stopDisconnected(time.Since(last))
			if !sleep(ctx, jittered(retry)) {
				return
			}
			retry = min(2*retry, retryMost)
			continue
		}
		retry, last = retryFirst, time.Now()
		failing.over()
		n.servers.learn(reply.Servers)
		n.gossip.learn(reply.Gossip)
		if registered && !reply.Registered {
			n.logger.Warn("the servers do not know this node any more; registering again")
			registered = false
			continue
		}
		if !registered {
			registered = true
			n.registered()
		}
		if reply.HeartbeatTTL > 0 {
			ttl = reply.HeartbeatTTL
		}
		n.beaten.Store(&heartbeat{at: last, ttl: ttl})
		wait := time.Duration((heartbeatEarliest + heartbeatSpread*rand.Float64()) * float64(ttl)) // jitter
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-n.refresh:
			t.Stop()
			registered = false
		case <-t.C:
		}
	}
}

// heartbeat is one that a server has answered.
type heartbeat struct {
	at  time.Time
	ttl time.Duration // until when the next one must come
}

// heartbeatStats is when the servers last answered a node, and how often it must be heard.
func (n *node) heartbeatStats(into map[string]string) {
	if last := n.beaten.Load(); last != nil {
		into["last_heartbeat"] = time.Since(last.at).Round(time.Millisecond).String()
		into["heartbeat_ttl"] = last.ttl.String()
	}
}

// trouble logs why a node's servers have not been heard, or have refused it: at once, and the same again only now and then,
// for it may last for days.
type trouble struct {
	node *node
	text string    // what was logged last; empty: nothing
	at   time.Time // when
	no   time.Time // when a server refused the node last: that is an answer too
}

// log logs an error. silence is how long no server has answered.
func (t *trouble) log(err error, registered bool, silence time.Duration) {
	n := t.node
	switch structs.CodeOf(err) {
	case structs.CodeBadRequest, structs.CodeForbidden:
		t.no = time.Now()
		if t.again(err.Error()) {
			n.logger.Error("the servers refuse this node; it takes no work until they accept it; trying again", "error", err)
		}
		return
	case structs.CodeLimited:
		t.no = time.Now()
		if t.again("limited") { // how long it is to wait changes with every try
			n.logger.Warn("the servers limit the rate of this node; trying again", "error", err)
		}
		return
	default:
	}
	about := []any{"registered", registered, "error", err}
	if addrs := n.servers.all(); len(addrs) > 0 {
		about = append(about, "servers", strings.Join(addrs, ", "))
	} else {
		about = append(about, "gossip", strings.Join(n.c.config.Gossip.Join, ", "))
	}
	if !t.no.IsZero() {
		silence = min(silence, time.Since(t.no))
	}
	if silence <= quietFailures {
		n.logger.Debug("the servers do not answer; trying again", about...) // an election, at most
	} else if t.again("silent") { // which of them it was that was tried last, and how it failed, changes with every try
		n.logger.Warn("the servers do not answer; trying again, and saying so once a minute", append(about, "for", silence.Round(time.Second))...)
	}
}

// over notes that a server has answered.
func (t *trouble) over() {
	if t.text == "silent" {
		t.node.logger.Info("a server answers again")
	}
	t.text = ""
}

// again reports whether a text is to be logged, and counts it as logged then.
func (t *trouble) again(text string) bool {
	if text == t.text && time.Since(t.at) < troubleEvery {
		return false
	}
	t.text, t.at = text, time.Now()
	return true
}

// beat registers the node, or reports that it is alive.
func (n *node) beat(ctx context.Context, registered bool, ttl time.Duration) (*structs.NodeUpdateReply, error) {
	limit := min(max(ttl/2, minHeartbeatLimit), maxHeartbeatLimit)
	var reply structs.NodeUpdateReply
	status := structs.NodeStatusReady
	if n.down.Load() {
		status = structs.NodeStatusDown
	}
	if registered || status == structs.NodeStatusDown {
		err := n.servers.call(ctx, limit, wire.MethodNodeHeartbeat, &structs.NodeHeartbeatRequest{
			NodeID: n.id, SecretID: n.secret, Status: status, GossipKeys: n.gossip.keys(),
		}, &reply)
		return &reply, err
	}
	if n.registering != nil {
		select {
		case n.registering <- struct{}{}:
			defer func() { <-n.registering }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	register := &structs.NodeRegisterRequest{Node: n.Node(), GossipKeys: n.gossip.keys(), WriteRequest: structs.WriteRequest{Region: n.c.config.Region}}
	err := n.servers.call(ctx, maxHeartbeatLimit, wire.MethodNodeRegister, register, &reply)
	return &reply, err
}

// stopDisconnected ends the allocations whose group wants that when the servers
// have not been reached for so long.
func (n *node) stopDisconnected(silence time.Duration) {
	for _, r := range n.all() {
		after := stopOnClientAfter(r.Alloc())
		if _, ended := r.EndedAt(); after > 0 && silence >= after && !ended {
			n.logger.Warn("no server was reached for too long; stopping an allocation, as its group requires", "alloc_id", r.ID(), "silence", silence)
			r.Halt()
		}
	}
}

func stopOnClientAfter(a *structs.Allocation) time.Duration {
	for _, g := range a.Job.TaskGroups {
		if g.Name == a.TaskGroup && g.Disconnect != nil {
			return g.Disconnect.StopOnClientAfter
		}
	}
	return 0
}

// jittered spreads what would come at one time.
func jittered(d time.Duration) time.Duration {
	return d/2 + time.Duration(rand.Int64N(int64(d))) // jitter
}
