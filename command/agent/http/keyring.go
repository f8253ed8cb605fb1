package httpapi

import (
	"net/http"
	"slices"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// keyringChange does what the path names with the keys of the servers' gossip, or, by
// ?pool=clients, of the clients'.
func keyringChange(r *request) (any, error) {
	if err := r.onServer(); err != nil {
		return nil, err
	}
	args := structs.KeyringRequest{Op: r.id(), Pool: r.query.Get("pool")}
	pools := []string{"", structs.PoolServers, structs.PoolClients}
	switch known := []string{structs.KeyInstall, structs.KeyUse, structs.KeyRemove, structs.KeyList}; {
	case !slices.Contains(known, args.Op):
		return nil, &statusError{http.StatusNotFound, "keyring operation " + args.Op + ": there are install, use, remove and list"}
	case (args.Op == structs.KeyList) != isSafe(r.Method):
		return nil, &statusError{http.StatusMethodNotAllowed, "list is read (GET), the others are written (PUT)"}
	case !slices.Contains(pools, args.Pool):
		return nil, badRequest("pool %q: must be servers or clients", args.Pool)
	}
	if args.Op != structs.KeyList {
		var body struct{ Key string }
		if err := r.decode(&body); err != nil {
			return nil, err
		}
		if body.Key == "" {
			return nil, badRequest("Key: missing")
		}
		args.Key = body.Key
	}
	reply := structs.KeyringReply{}
	if err := r.s.cfg.Backend.Call(r.Context(), wire.MethodKeyring, &args, &reply); err != nil {
		return nil, err
	}
	return &reply, nil
}
