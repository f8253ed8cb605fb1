package membership

import (
	"context"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/nomadish/nomadish/internal/keyring"
	"github.com/nomadish/nomadish/structs"
)

// The files of the keyrings: of the region's gossip, and of that with other regions.
const (
	KeyringLAN = "serf.keyring"
	KeyringWAN = "serf_wan.keyring"
)

// openKeyring returns the keys of a gossip, which are kept in a file; nil: there are none. first is that of the configuration,
// where its name is setting.
func openKeyring(o *Options, file, setting string, first []byte) (*keyring.Ring, error) {
	path := ""
	if o.Dir != "" {
		path = filepath.Join(o.Dir, file)
	}
	ring, err := keyring.Open(path, setting, first, o.Logger.Named("gossip"))
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	return ring, nil
}

// OpenKeyrings returns the keys of the servers' gossips; nil: that gossip is not encrypted.
func OpenKeyrings(o *Options) (lan, wan *keyring.Ring, err error) {
	if lan, err = openKeyring(o, KeyringLAN, "encrypt", o.Key); err == nil && o.WAN.Addr != "" {
		wan, err = openKeyring(o, KeyringWAN, "encrypt", o.Key)
	}
	return lan, wan, err
}

// ClientKeys are the keys of the clients' gossip.
type ClientKeys interface {
	// Change does one of the operations of structs.KeyringRequest with a key.
	Change(ctx context.Context, op string, key []byte) (*structs.KeyringReply, error)
	// Refuse returns why the servers' gossip must not have a key.
	Refuse(key []byte) error
}

// Keyrings changes the keys of the gossips that this server takes part in.
type Keyrings struct {
	servers KeyPools
	clients ClientKeys // nil: it does not gossip with clients
}

// NewKeyrings returns what changes the keys of these pools; clients nil: this server does not gossip with clients.
func NewKeyrings(servers KeyPools, clients ClientKeys) *Keyrings { return &Keyrings{servers, clients} }

// Change implements cluster.Keyrings.
func (k *Keyrings) Change(ctx context.Context, args *structs.KeyringRequest) (*structs.KeyringReply, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(args.Key))
	if err != nil {
		return nil, structs.Errorf(structs.CodeBadRequest, "the key is not in base64").WithHint("`operator gossip keyring generate` makes one")
	}
	switch {
	case args.Pool == structs.PoolClients && k.clients == nil:
		return nil, structs.Errorf(structs.CodeBadRequest, "this server does not gossip with clients").WithHint("send the request to one that does")
	case args.Pool == structs.PoolClients:
		return k.clients.Change(ctx, args.Op, key)
	case args.Op == structs.KeyInstall && k.clients != nil:
		if err := k.clients.Refuse(key); err != nil {
			return nil, err
		}
	}
	return k.servers.Change(ctx, args.Op, key)
}

// KeyPool is a gossip pool of servers whose keys an operator may change.
type KeyPool struct {
	Name string // for messages
	Pool *keyring.Pool
}

// KeyPools are those of this server, whose keys are changed together.
type KeyPools []KeyPool

// Change does one of the operations. All pools are looked at before the first is
// changed: a member that lacks the key would be cut off by its use.
func (all KeyPools) Change(ctx context.Context, op string, key []byte) (*structs.KeyringReply, error) {
	if op != structs.KeyList {
		have := make([]int, len(all))
		err := all.each(func(i int, p *KeyPool) error {
			var err error
			have[i], err = p.check(ctx, op, key)
			return err
		})
		if err != nil {
			return nil, err
		}
		if slices.Max(have) == 0 && op != structs.KeyInstall {
			return nil, structs.Errorf(structs.CodeNotFound, "no member has this key").WithHint("`operator gossip keyring list` shows those that there are")
		}
	}
	return all.change(ctx, op, key)
}

// each does something with all pools at once, and returns the first error in their order.
func (all KeyPools) each(f func(i int, p *KeyPool) error) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() { errs[i] = f(i, &all[i]) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// check returns how many members of a pool have the key, or an error if the operation is not allowed.
func (p *KeyPool) check(ctx context.Context, op string, key []byte) (int, error) {
	r, err := p.Pool.Query(ctx, structs.KeyList, nil)
	if err != nil {
		return 0, fmt.Errorf("pool %s: %w", p.Name, err)
	}
	if err := keyring.Check(key); err != nil {
		return 0, err
	}
	if len(r.Absent) > 0 {
		return 0, keyring.ErrAbsent(r.Absent)
	}
	if len(r.Failed) > 0 {
		return 0, structs.Errorf(structs.CodeConflict, "nothing was changed: which keys they have is not known of %s", keyring.Reasons(r.Failed))
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

func (all KeyPools) change(ctx context.Context, op string, key []byte) (*structs.KeyringReply, error) {
	reply := &structs.KeyringReply{Messages: map[string]string{}, Keys: map[string]int{}, PrimaryKeys: map[string]int{}}
	call, keys, inUse, failed := map[string]bool{}, map[string][]string{}, map[string][]string{}, map[string]string{}
	reports := make([]*keyring.Report, len(all))
	err := all.each(func(i int, p *KeyPool) error {
		var err error
		if reports[i], err = p.Pool.Query(ctx, op, key); err != nil {
			return fmt.Errorf("pool %s: %w", p.Name, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, r := range reports {
		for _, name := range r.Members {
			call[name] = true
		}
		for key, names := range r.Keys { // order does not matter: each key has its own names
			keys[key] = append(keys[key], names...)
			inUse[key] = append(inUse[key], r.InUse[key]...)
		}
		for name, why := range r.Failed { // order does not matter: each member has its own text
			failed[name], reply.Messages[name] = why, why
		}
		for _, name := range r.Absent {
			reply.Messages[name] = "it has failed: it was not queried"
			if op != structs.KeyList {
				failed[name] = "it has failed; do it again when it is back"
			}
		}
	}
	if len(failed) > 0 {
		return nil, structs.Errorf(structs.CodeConflict, "%d of %d members have done it; not so %s", len(call)-len(failed), len(call), keyring.Reasons(failed)).
			WithHint("do it again; what is done already stays so")
	}
	for key, names := range keys { // order does not matter
		reply.Keys[key] = distinct(names)
		if n := distinct(inUse[key]); n > 0 {
			reply.PrimaryKeys[key] = n
		}
	}
	reply.NumNodes = len(call)
	return reply, nil
}

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}

func distinct(names []string) int {
	slices.Sort(names)
	return len(slices.Compact(names))
}
