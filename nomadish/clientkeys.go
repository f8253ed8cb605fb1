package nomadish

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/serf/serf"

	"github.com/nomadish/nomadish/internal/clientpool"
	"github.com/nomadish/nomadish/internal/keyring"
	"github.com/nomadish/nomadish/nomadish/gossip"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// Servers tell each other of the clients' keys by a query through their own gossip, in which whoever speaks is a server: never through
// that of the clients, and never in the clear. Clients have them from the answers to their heartbeats.
const clientKeyQuery = "nomadish-client-keyring"

const (
	clientKeysGet = "get"
	clientKeysSet = "set"
	// clientKeysLook is how often servers compare their rings, beside whenever one comes or goes; clientKeysRest lies between two times.
	clientKeysLook = time.Minute
	clientKeysRest = time.Second
	// namesTold are named of many clients, with so many bytes each: an answer is one packet.
	namesTold = 3
	nameBytes = 40
)

// clientKeyCommand is what a server is asked for, clientKeyAnswer what it says.
type (
	clientKeyCommand struct {
		Op    string
		Print string         `json:",omitempty"` // of the key that the change is about
		State *keyring.State `json:",omitempty"` // of clientKeysSet
	}
	clientKeyAnswer struct {
		Error   string         `json:",omitempty"`
		Off     bool           `json:",omitempty"` // it does not gossip with clients
		State   *keyring.State `json:",omitempty"` // nil: it does in the clear
		Clients *clientCount   `json:",omitempty"` // of the leader
	}
	// clientCount is what the clients that gossip and are ready have said of their keys.
	clientCount struct {
		Total   int
		Behind  int               // have not the ring of the leader, or have not said so
		Has     map[string][2]int // by a key's fingerprint: so many have it, so many encrypt with it
		Lack    some              // the key asked for, or have not said
		Use     some              // it
		Unknown some              // have not said, or have none that is known
	}
	some struct {
		N     int
		Names []string `json:",omitempty"` // of the first
	}
)

func (s *some) add(name string) {
	if s.N++; len(s.Names) < namesTold {
		if len(name) > nameBytes {
			name = strings.ToValidUTF8(name[:nameBytes], "") + "…"
		}
		s.Names = append(s.Names, name)
	}
}

func (s some) String() string {
	text := strings.Join(s.Names, ", ")
	if more := s.N - len(s.Names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// clientKeys are the keys of the clients' gossip, as its servers change them.
type clientKeys struct {
	clients *clients
	servers *gossip.Pool
	own     []*keyring.Ring // of the servers' gossips
	store   *state.Store
	leads   atomic.Pointer[leaderParts] // nil until there are some
	logger  hclog.Logger
}

// lead has it told when this server leads.
func (k *clientKeys) lead(l *leaderParts) {
	if k != nil {
		k.leads.Store(l)
	}
}

func (k *clientKeys) leading() bool {
	l := k.leads.Load()
	return l != nil && l.leading()
}

// errShared refuses a key in two gossips.
func errShared(of, speaks string) error {
	return structs.Errorf(structs.CodeBadRequest, "that is a key of the %s' gossip, too: %s", of, speaks).
		WithHint("`nomadish operator gossip keyring generate` makes another")
}

// openClientKeys makes what changes the keys of the clients' gossip; nil: this server does not take part in it. own are its rings of the
// servers' gossips.
func openClientKeys(cfg *Config, clients *clients, store *state.Store, own ...*keyring.Ring) *clientKeys {
	if clients == nil {
		return nil
	}
	k := &clientKeys{clients: clients, own: own, store: store, logger: cfg.Logger.Named("clients")}
	if clients.ring == nil {
		return k
	}
	for _, key := range clients.ring.Keys() {
		if k.refuseKey(key) != nil {
			k.logger.Error("the servers' gossip and the clients' have a key in common: any client could speak as a server; replace it in one of them (`operator gossip keyring`)")
		}
	}
	return k
}

func (k *clientKeys) addr() string {
	if k == nil {
		return ""
	}
	return k.clients.addr()
}

// refuse tells why the servers' gossip must not have a key.
func (k *clientKeys) refuse(key []byte) error {
	if k != nil && k.clients.ring != nil && k.clients.ring.State().Has(key) {
		return errShared("clients", "any client could speak as a server")
	}
	return nil
}

// refuseKey tells why the clients' gossip must not have a key.
func (k *clientKeys) refuseKey(key []byte) error {
	if slices.ContainsFunc(k.own, func(r *keyring.Ring) bool { return r != nil && r.State().Has(key) }) {
		return errShared("servers", "whoever has it speaks as a server")
	}
	return nil
}

// answer answers another server, or this one itself. k may be nil: this server does not gossip with clients. In the clear anybody may
// be who asks, and is not answered.
func (k *clientKeys) answer(q *serf.Query) {
	if q.Name != clientKeyQuery || k != nil && k.own[0] == nil {
		return
	}
	raw, err := json.Marshal(k.do(q.Payload))
	if err == nil {
		err = q.Respond(raw)
	}
	if err != nil && k != nil {
		k.logger.Warn("answer a server that asked for the clients' keys", "server", q.SourceNode(), "error", err)
	}
}

// do does what a server asks for. No log and no error holds a key.
func (k *clientKeys) do(payload []byte) *clientKeyAnswer {
	var c clientKeyCommand
	switch {
	case json.Unmarshal(payload, &c) != nil:
		return &clientKeyAnswer{Error: "what is asked for cannot be read"}
	case k == nil:
		return &clientKeyAnswer{Off: true}
	case k.clients.ring == nil:
		return &clientKeyAnswer{Error: "its gossip with the clients is not encrypted"}
	}
	if c.Op == clientKeysSet && c.State != nil {
		if err := k.take(*c.State); err != nil {
			k.logger.Error("the keys of the clients' gossip were not changed", "error", err)
			return &clientKeyAnswer{Error: fmt.Sprintf("%.300s", err)}
		}
	}
	have := k.clients.ring.State()
	return &clientKeyAnswer{State: &have, Clients: k.count(c.Print)}
}

// take puts a newer ring in the place of this server's.
func (k *clientKeys) take(next keyring.State) error {
	for _, key := range next.Keys {
		if err := k.refuseKey(key); err != nil {
			return err
		}
	}
	taken, err := k.clients.ring.Take(next)
	if taken {
		k.logger.Info("the keys of the clients' gossip were changed", "keys", len(next.Keys), "version", next.Version)
	}
	return err
}

// clientKeyReport is what all servers answered.
type clientKeyReport struct {
	states  map[string]keyring.State // by server
	newest  keyring.State
	failed  map[string]string
	absent  []string
	clients *clientCount // nil: no leader answered
}

// ask asks all servers of the region.
func (k *clientKeys) ask(ctx context.Context, c clientKeyCommand) (*clientKeyReport, error) {
	payload, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	r := &clientKeyReport{states: map[string]keyring.State{}, failed: map[string]string{}}
	if !k.servers.Encrypted() {
		if slices.ContainsFunc(k.servers.Members(), func(m structs.ServerMember) bool {
			return m.Name != k.servers.Self().Name && m.Status != structs.MemberLeft
		}) {
			return nil, structs.Errorf(structs.CodeBadRequest, "the servers' own gossip is not encrypted: they would tell each other the clients' keys in the clear").
				WithHint("set `server { encrypt = … }` on all servers, and start them again")
		}
		r.add(k.servers.Self().Name, k.do(payload))
		return r, nil
	}
	asked, err := k.servers.Keys().Gather(ctx, clientKeyQuery, payload, func(member string, raw []byte) {
		var a clientKeyAnswer
		if json.Unmarshal(raw, &a) != nil {
			a.Error = "its answer cannot be read"
		}
		r.add(member, &a)
	})
	if err != nil {
		return nil, err
	}
	r.absent = asked.Absent
	for _, name := range asked.Silent {
		r.failed[name] = keyring.Silent
	}
	return r, nil
}

func (r *clientKeyReport) add(member string, a *clientKeyAnswer) {
	switch {
	case a.Error != "":
		r.failed[member] = a.Error
	case a.Off || a.State == nil || len(a.State.Keys) == 0:
	default:
		if r.states[member] = *a.State; r.newest.Keys == nil || a.State.Newer(r.newest) {
			r.newest = *a.State
		}
		if a.Clients != nil {
			r.clients = a.Clients
		}
	}
}

// change does one of the operations on all servers, and so on all clients.
func (k *clientKeys) change(ctx context.Context, op string, key []byte) (*structs.KeyringReply, error) {
	if k.clients.ring == nil {
		return nil, structs.Errorf(structs.CodeBadRequest, "the clients' gossip is not encrypted").
			WithHint("set `server { client_gossip_encrypt = … }` and `client { gossip_encrypt = … }` on all agents, and start them again")
	}
	c := clientKeyCommand{Op: clientKeysGet}
	if op != structs.KeyList {
		if err := keyring.Check(key); err != nil {
			return nil, err
		}
		c.Print = keyring.Print(key)
	}
	if op == structs.KeyInstall {
		if err := k.refuseKey(key); err != nil {
			return nil, err
		}
	}
	r, err := k.ask(ctx, c)
	if err != nil {
		return nil, err
	}
	if own := k.clients.ring.State(); !r.newest.Newer(own) {
		r.newest = own
	}
	if op == structs.KeyList {
		return r.list(), nil
	}
	next, err := r.allow(op, key)
	if err != nil {
		return nil, err
	}
	done, err := k.ask(ctx, clientKeyCommand{Op: clientKeysSet, State: &next})
	if err != nil {
		return nil, err
	}
	for name, s := range done.states { // order does not matter: each has its own text
		if s.Version != next.Version || next.Newer(s) || s.Newer(next) {
			done.failed[name] = "the keys were changed by another at the same time"
		}
	}
	for _, name := range done.absent {
		done.failed[name] = "it has failed"
	}
	if len(done.failed) > 0 {
		return nil, structs.Errorf(structs.CodeConflict, "%d servers have done it; not so %s", len(done.states), told(done.failed)).
			WithHint("look with `list -clients`, and do it again; what is done already stays so")
	}
	reply := &structs.KeyringReply{NumNodes: len(done.states)}
	if r.clients != nil {
		reply.Clients = r.clients.Total
		reply.NumNodes += reply.Clients
	}
	return reply, nil
}

// allow gives the ring that an operation leads to, or says what is against it.
func (r *clientKeyReport) allow(op string, key []byte) (keyring.State, error) {
	conflict := func(format string, args ...any) *structs.Error {
		return structs.Errorf(structs.CodeConflict, "nothing was changed: "+format, args...)
	}
	switch {
	case len(r.absent) > 0:
		return r.newest, haveFailed(r.absent)
	case len(r.failed) > 0:
		return r.newest, conflict("which keys they have is not known of %s", told(r.failed))
	case op == structs.KeyInstall:
		return r.newest.With(op, key)
	case !r.newest.Has(key):
		return r.newest, structs.Errorf(structs.CodeNotFound, "no member has this key").WithHint("`operator gossip keyring list -clients` shows those that there are")
	case r.clients == nil:
		return r.newest, structs.Errorf(structs.CodeNoLeader, "nothing was changed: no server leads, and which keys the clients have is not known").WithHint("try again")
	case op == structs.KeyUse && r.clients.Lack.N > 0:
		return r.newest, conflict("%d of %d clients have not said that they have the key, and would be cut off: %s", r.clients.Lack.N, r.clients.Total, r.clients.Lack).
			WithHint("they take it with their next heartbeats, within seconds in a small cluster: try again; `operator gossip keyring list -clients` shows how many have it")
	case op == structs.KeyRemove && r.clients.Use.N > 0:
		return r.newest, conflict("%d of %d clients still encrypt with the key: %s", r.clients.Use.N, r.clients.Total, r.clients.Use).
			WithHint("they follow `operator gossip keyring use` with their next heartbeats: try again")
	}
	next, err := r.newest.With(op, key)
	if structs.CodeOf(err) == structs.CodeConflict {
		err = conflict("%w", err).WithHint("`operator gossip keyring use -clients` another first")
	}
	return next, err
}

// list tells which keys all members have.
func (r *clientKeyReport) list() *structs.KeyringReply {
	reply := &structs.KeyringReply{Messages: maps.Clone(r.failed), Keys: map[string]int{}, PrimaryKeys: map[string]int{}, NumNodes: len(r.states) + len(r.failed)}
	prints := map[string]string{}
	for _, s := range r.states { // order does not matter: they are counted
		for i, key := range s.Keys {
			text := base64.StdEncoding.EncodeToString(key)
			prints[keyring.Print(key)] = text
			reply.Keys[text]++
			if i == 0 {
				reply.PrimaryKeys[text]++
			}
		}
	}
	for _, name := range r.absent {
		reply.Messages[name] = "it has failed: it was not asked"
	}
	if r.clients == nil {
		reply.Messages["clients"] = "no server leads: which keys they have is not known"
		return reply
	}
	reply.Clients, reply.Behind = r.clients.Total, r.clients.Behind
	reply.NumNodes += reply.Clients
	for print, n := range r.clients.Has { // order does not matter: each key has its own counts
		if text := prints[print]; text != "" {
			reply.Keys[text] += n[0]
			if n[1] > 0 {
				reply.PrimaryKeys[text] += n[1]
			}
		}
	}
	if n := r.clients.Unknown; n.N > 0 {
		reply.Messages["clients"] = fmt.Sprintf("%d of %d have no such key, or have not said which they have: %s", n.N, r.clients.Total, n)
	}
	return reply
}

// count says what the clients have of the key with a fingerprint; nil: this server does not lead, and nobody tells it.
func (k *clientKeys) count(print string) *clientCount {
	s := k.clients
	s.mu.Lock()
	defer s.mu.Unlock()
	if !k.leading() {
		clear(s.keys)
		return nil
	}
	c := &clientCount{Has: map[string][2]int{}}
	own := k.clients.ring.Prints()
	known := own.Prints
	seen := map[string]bool{}
	for n := range k.store.Snapshot().Nodes(nil, "", false) {
		has, said := s.keys[n.ID]
		seen[n.ID] = true
		if m, heard := s.pool.Member(n.ID); n.Status != structs.NodeStatusReady || !said && (!heard || m.Role != clientpool.RoleClient || !m.Alive()) {
			continue
		}
		c.Total++
		if has.Version != own.Version || !slices.Equal(has.Prints, own.Prints) {
			c.Behind++
		}
		if !slices.ContainsFunc(has.Prints, func(p string) bool { return slices.Contains(known, p) }) {
			c.Unknown.add(n.Name)
		}
		if print != "" && !slices.Contains(has.Prints, print) {
			c.Lack.add(n.Name)
		}
		for i, p := range has.Prints {
			if !slices.Contains(known, p) {
				continue
			}
			counts := c.Has[p]
			if counts[0]++; i == 0 {
				counts[1]++
				if p == print {
					c.Use.add(n.Name)
				}
			}
			c.Has[p] = counts
		}
	}
	maps.DeleteFunc(s.keys, func(id string, _ structs.GossipKeys) bool { return !seen[id] })
	return c
}

// tellKeys says in the answer to a client's heartbeat what it needs of the servers' ring, and remembers which keys it has.
func (s *clients) tellKeys(nodeID string, has *structs.GossipKeys, to *structs.ClientGossip) {
	s.mu.Lock()
	if has == nil {
		delete(s.keys, nodeID)
	} else if len(has.Prints) <= keyring.MaxKeys && !slices.ContainsFunc(has.Prints, func(p string) bool { return len(p) > len(keyring.Print(nil)) }) {
		s.keys[nodeID] = *has
	}
	s.mu.Unlock()
	if s.ring == nil {
		return
	}
	own := s.ring.Prints()
	to.Primary = own.Prints[0]
	if has == nil || has.Version > own.Version || has.Version == own.Version && slices.Equal(has.Prints, own.Prints) {
		return
	}
	var err error
	if to.Keyring, err = s.ring.Seal(has.Prints); err != nil {
		s.logger.Error("seal the keys of the clients' gossip for a client", "node_id", nodeID, "error", err)
	}
}

// keepSame takes newer rings from other servers whenever one comes or goes, and once in a while, until ctx ends: one that was away
// has not heard of a change.
func (k *clientKeys) keepSame(ctx context.Context, changed <-chan struct{}) {
	look := time.NewTicker(clientKeysLook)
	defer look.Stop()
	for {
		if k.clients.ring != nil && k.servers.Encrypted() {
			r, err := k.ask(ctx, clientKeyCommand{Op: clientKeysGet})
			if err == nil && r.newest.Newer(k.clients.ring.State()) {
				err = k.take(r.newest)
			}
			if err != nil && ctx.Err() == nil && k.clients.told.First("keys "+err.Error(), time.Now()) {
				k.logger.Warn("the keys of the clients' gossip are not compared with other servers'; trying again", "error", err)
			}
		}
		select {
		case <-time.After(clientKeysRest):
		case <-ctx.Done():
			return
		}
		select {
		case <-look.C:
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
