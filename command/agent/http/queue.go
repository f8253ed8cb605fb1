package httpapi

import (
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// queueList returns the queue in its order, a page of it: of one node pool with
// ?node_pool=…, else those of all pools one after the other.
func queueList(r *request) (any, error) {
	var reply structs.QueueReply
	args := structs.QueueRequest{NodePool: r.query.Get("node_pool"), QueryOptions: r.opts}
	if err := r.read(wire.MethodQueue, &args, &reply); err != nil {
		return nil, err
	}
	return list(reply.Entries), nil
}
