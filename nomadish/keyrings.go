package nomadish

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/structs"
	"github.com/nomadish/nomadish/structs/wire/keyring"
)

// The files of the keyrings: of the region's gossip, and of that with other regions.
const (
	ringLAN = "serf.keyring"
	ringWAN = "serf_wan.keyring"
)

// openKeyring gives the keys of a gossip among servers, which are kept in a file; nil: there are none.
func openKeyring(cfg *Config, file string) (*keyring.Ring, error) {
	path := ""
	if dir := cfg.serverDir(); dir != "" {
		path = filepath.Join(dir, file)
	}
	ring, err := keyring.Open(path, cfg.GossipKey, cfg.Logger.Named("gossip"))
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	return ring, nil
}

// keyPool is a gossip pool whose keys an operator may change.
type keyPool struct {
	group string // structs.PoolServers or structs.PoolClients: those of one are changed together
	name  string // for messages
	pool  *keyring.Pool
}

// keyPools changes the keys of this server's pools.
type keyPools []keyPool

// Change implements rpc.Keyrings. All pools of the group are looked at before the first is
// changed: a member that lacks the key would be cut off by its use.
func (all keyPools) Change(ctx context.Context, args *structs.KeyringRequest) (*structs.KeyringReply, error) {
	group := args.Pool
	if group == "" {
		group = structs.PoolServers
	}
	pools := slices.DeleteFunc(slices.Clone(all), func(p keyPool) bool { return p.group != group })
	if len(pools) == 0 {
		return nil, structs.Errorf(structs.CodeBadRequest, "there is no gossip pool of the %s here", group)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(args.Key))
	if err != nil {
		return nil, structs.Errorf(structs.CodeBadRequest, "the key is not in base64").WithHint("`operator gossip keyring generate` makes one")
	}
	if args.Op == structs.KeyUse || args.Op == structs.KeyRemove {
		have := 0
		for _, p := range pools {
			n, err := p.check(ctx, args.Op, key)
			if err != nil {
				return nil, err
			}
			have += n
		}
		if have == 0 {
			return nil, structs.Errorf(structs.CodeNotFound, "no member has this key").WithHint("`operator gossip keyring list` shows those that there are")
		}
	}
	return pools.change(ctx, args.Op, key)
}

// check tells how many members of a pool have the key, or what is against the operation.
func (p *keyPool) check(ctx context.Context, op string, key []byte) (int, error) {
	r, err := p.pool.Ask(ctx, structs.KeyList, nil)
	if err != nil {
		return 0, fmt.Errorf("pool %s: %w", p.name, err)
	}
	if len(r.Failed) > 0 {
		return 0, structs.Errorf(structs.CodeConflict, "nothing was changed: which keys they have is not known of %s", told(r.Failed))
	}
	if len(r.Absent) > 0 {
		return 0, structs.Errorf(structs.CodeConflict, "nothing was changed: %s has failed, and could not come back without the key", strings.Join(r.Absent, ", ")).
			WithHint("start it, or `server force-leave` it if it is lost")
	}
	text := base64.StdEncoding.EncodeToString(key)
	have := r.Keys[text]
	switch lacking := without(r.Members, have); {
	case op == structs.KeyUse && len(have) > 0 && len(lacking) > 0:
		return 0, structs.Errorf(structs.CodeConflict, "nothing was changed: the key is not installed on %s, which would be cut off", strings.Join(lacking, ", ")).
			WithHint("`operator gossip keyring install` it first")
	case op == structs.KeyRemove && len(r.InUse[text]) > 0:
		return 0, structs.Errorf(structs.CodeConflict, "nothing was changed: the key is the one in use on %s", strings.Join(r.InUse[text], ", ")).
			WithHint("`operator gossip keyring use` another first")
	}
	return len(have), nil
}

func (all keyPools) change(ctx context.Context, op string, key []byte) (*structs.KeyringReply, error) {
	reply := &structs.KeyringReply{Messages: map[string]string{}, Keys: map[string]int{}, PrimaryKeys: map[string]int{}}
	asked, keys, inUse, failed := map[string]bool{}, map[string][]string{}, map[string][]string{}, map[string]string{}
	for _, p := range all {
		r, err := p.pool.Ask(ctx, op, key)
		if err != nil {
			return nil, fmt.Errorf("pool %s: %w", p.name, err)
		}
		for _, name := range r.Members {
			asked[name] = true
		}
		for key, names := range r.Keys { // order does not matter: each key has its own names
			keys[key] = append(keys[key], names...)
			inUse[key] = append(inUse[key], r.InUse[key]...)
		}
		for name, why := range r.Failed { // order does not matter: each member has its own text
			failed[name], reply.Messages[name] = why, why
		}
		if op == structs.KeyList {
			continue
		}
		for _, name := range r.Absent {
			reply.Messages[name] = "it has failed, and was not told: do it again when it is back"
		}
	}
	if len(failed) > 0 {
		return nil, structs.Errorf(structs.CodeConflict, "%d of %d members have done it; not so %s", len(asked)-len(failed), len(asked), told(failed)).
			WithHint("do it again; what is done already stays so")
	}
	for key, names := range keys { // order does not matter
		reply.Keys[key] = distinct(names)
		if n := distinct(inUse[key]); n > 0 {
			reply.PrimaryKeys[key] = n
		}
	}
	reply.NumNodes = len(asked)
	return reply, nil
}

// told says why each of some members did not do what it was asked for.
func told(failed map[string]string) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		out = append(out, name+" ("+failed[name]+")")
	}
	return strings.Join(out, ", ")
}

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}

func distinct(names []string) int {
	slices.Sort(names)
	return len(slices.Compact(names))
}
