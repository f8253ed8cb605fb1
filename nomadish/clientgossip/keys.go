package clientgossip

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
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// KeyQuery is the query by which servers inform each other of the clients' keys: through their own gossip, in which whoever speaks is a
// server; never through that of the clients, and never in the clear. Clients have them from the answers to their heartbeats.
const KeyQuery = "nomadish-client-keyring"

const (
	clientKeysGet = "get"
	clientKeysSet = "set"
	// clientKeysLook is how often servers compare their rings, beside whenever one comes or goes; clientKeysRest lies between two times.
	clientKeysLook = time.Minute
	clientKeysRest = time.Second
	// namesLogged are named of many clients, with so many bytes each: an answer is one packet.
	namesLogged = 3
	nameBytes   = 40
)

// clientKeyCommand is a request to a server, clientKeyAnswer its answer.
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
	// clientCount is what the clients that gossip and are ready have reported about their keys.
	clientCount struct {
		Total   int
		Behind  int               // have not the ring of the leader, or have not reported it
		Has     map[string][2]int // by a key's fingerprint: so many have it, so many encrypt with it
		Lack    countedNames      // the requested key, or have not reported it
		Use     countedNames      // it
		Unknown countedNames      // have not reported any, or have none that is known
	}
	countedNames struct {
		N     int
		Names []string `json:",omitempty"` // of the first
	}
)

func (s *countedNames) add(name string) {
	if s.N++; len(s.Names) < namesLogged {
		if len(name) > nameBytes {
			name = strings.ToValidUTF8(name[:nameBytes], "") + "…"
		}
		s.Names = append(s.Names, name)
	}
}

func (s countedNames) String() string {
	text := strings.Join(s.Names, ", ")
	if more := s.N - len(s.Names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// ServerGossip is the servers' own gossip, by which they inform each other of the clients' keys.
type ServerGossip interface {
	Encrypted() bool
	Self() structs.ServerMember
	Members() []structs.ServerMember
	Keys() *keyring.Pool
	Subscribe() (changed <-chan struct{}, cancel func())
}

// State is the replicated state, which knows what nodes there are.
type State interface {
	Snapshot() *state.Snapshot
}

// Keys are the keys of the clients' gossip, as its servers change them. Nil Keys are those of a server that takes no part in it.
type Keys struct {
	clients *Pool
	servers ServerGossip
	own     []*keyring.Ring // of the servers' gossips
	store   State
	leads   atomic.Pointer[func() bool] // nil until it is known
	logger  hclog.Logger
}

// Connect sets the servers' gossip. It is called before Change and KeepSame.
func (k *Keys) Connect(servers ServerGossip) {
	if k != nil {
		k.servers = servers
	}
}

// Lead sets the function that reports whether this server leads.
func (k *Keys) Lead(leading func() bool) {
	if k != nil {
		k.leads.Store(&leading)
	}
}

func (k *Keys) leading() bool {
	leading := k.leads.Load()
	return leading != nil && (*leading)()
}

// errShared refuses a key in two gossips.
func errShared(of, speaks string) error {
	return structs.Errorf(structs.CodeBadRequest, "that is a key of the %s' gossip, too: %s", of, speaks).
		WithHint("`nomadish operator gossip keyring generate` makes another")
}

// OpenKeys returns what changes the keys of the clients' gossip. It returns nil if clients is: this server does not take part in it. own
// are its rings of the servers' gossips, that of its region first.
func OpenKeys(clients *Pool, store State, own ...*keyring.Ring) *Keys {
	if clients == nil {
		return nil
	}
	k := &Keys{clients: clients, own: own, store: store, logger: clients.logger}
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

// Refuse returns why the servers' gossip must not have a key.
func (k *Keys) Refuse(key []byte) error {
	if k != nil && k.clients.ring != nil && k.clients.ring.State().Has(key) {
		return errShared("clients", "any client could speak as a server")
	}
	return nil
}

// refuseKey returns why the clients' gossip must not have a key.
func (k *Keys) refuseKey(key []byte) error {
	if slices.ContainsFunc(k.own, func(r *keyring.Ring) bool { return r != nil && r.State().Has(key) }) {
		return errShared("servers", "its owner can act as a server")
	}
	return nil
}

// Answer answers another server, or this one itself. k may be nil: this server does not gossip with clients. In the clear anybody may
// be the sender, and is not answered.
func (k *Keys) Answer(q *serf.Query) {
	if q.Name != KeyQuery || k != nil && k.own[0] == nil {
		return
	}
	raw, err := json.Marshal(k.do(q.Payload))
	if err == nil {
		err = q.Respond(raw)
	}
	if err != nil && k != nil {
		k.logger.Warn("answer a server's query for the clients' keys", "server", q.SourceNode(), "error", err)
	}
}

// do executes a server's request. No log and no error holds a key.
func (k *Keys) do(payload []byte) *clientKeyAnswer {
	var c clientKeyCommand
	switch {
	case json.Unmarshal(payload, &c) != nil:
		return &clientKeyAnswer{Error: "the query cannot be read"}
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
func (k *Keys) take(next keyring.State) error {
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

// query queries all servers of the region.
func (k *Keys) query(ctx context.Context, c clientKeyCommand) (*clientKeyReport, error) {
	payload, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	r := &clientKeyReport{states: map[string]keyring.State{}, failed: map[string]string{}}
	if !k.servers.Encrypted() {
		if slices.ContainsFunc(k.servers.Members(), func(m structs.ServerMember) bool {
			return m.Name != k.servers.Self().Name && m.Status != structs.MemberLeft
		}) {
			return nil, structs.Errorf(structs.CodeBadRequest, "the servers' own gossip is not encrypted: the clients' keys would be sent between servers in the clear").
				WithHint("set `server { encrypt = … }` on all servers, and start them again")
		}
		r.add(k.servers.Self().Name, k.do(payload))
		return r, nil
	}
	query, err := k.servers.Keys().Gather(ctx, KeyQuery, payload, func(member string, raw []byte) {
		var a clientKeyAnswer
		if json.Unmarshal(raw, &a) != nil {
			a.Error = "its answer cannot be read"
		}
		r.add(member, &a)
	})
	if err != nil {
		return nil, err
	}
	r.absent = query.Absent
	for _, name := range query.Silent {
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
		if r.states[member] = *a.State; r.newest.Keys == nil || a.State.Supersedes(r.newest) {
			r.newest = *a.State
		}
		if a.Clients != nil {
			r.clients = a.Clients
		}
	}
}

// Change does one of the operations on all servers, and so on all clients.
func (k *Keys) Change(ctx context.Context, op string, key []byte) (*structs.KeyringReply, error) {
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
	r, err := k.query(ctx, c)
	if err != nil {
		return nil, err
	}
	if own := k.clients.ring.State(); !r.newest.Supersedes(own) {
		r.newest = own
	}
	if op == structs.KeyList {
		return r.list(), nil
	}
	next, err := r.allow(op, key)
	if err != nil {
		return nil, err
	}
	done, err := k.query(ctx, clientKeyCommand{Op: clientKeysSet, State: &next})
	if err != nil {
		return nil, err
	}
	for name, s := range done.states { // order does not matter: each has its own text
		if s.Version != next.Version || next.Supersedes(s) || s.Supersedes(next) {
			done.failed[name] = "the keys were changed by another at the same time"
		}
	}
	for _, name := range done.absent {
		done.failed[name] = "it has failed"
	}
	if len(done.failed) > 0 {
		return nil, structs.Errorf(structs.CodeConflict, "%d servers have done it; not so %s", len(done.states), keyring.Reasons(done.failed)).
			WithHint("look with `list -clients`, and do it again; what is done already stays so")
	}
	reply := &structs.KeyringReply{NumNodes: len(done.states)}
	if r.clients != nil {
		reply.Clients = r.clients.Total
		reply.NumNodes += reply.Clients
	}
	return reply, nil
}

// allow returns the ring that an operation leads to, or an error if it is not allowed.
func (r *clientKeyReport) allow(op string, key []byte) (keyring.State, error) {
	conflict := func(format string, args ...any) *structs.Error {
		return structs.Errorf(structs.CodeConflict, "nothing was changed: "+format, args...)
	}
	switch {
	case len(r.absent) > 0:
		return r.newest, keyring.ErrAbsent(r.absent)
	case len(r.failed) > 0:
		return r.newest, conflict("which keys they have is not known of %s", keyring.Reasons(r.failed))
	case op == structs.KeyInstall:
		return r.newest.With(op, key)
	case !r.newest.Has(key):
		return r.newest, structs.Errorf(structs.CodeNotFound, "no member has this key").WithHint("`operator gossip keyring list -clients` shows those that there are")
	case r.clients == nil:
		return r.newest, structs.Errorf(structs.CodeNoLeader, "nothing was changed: no server leads, and which keys the clients have is not known").WithHint("try again")
	case op == structs.KeyUse && r.clients.Lack.N > 0:
		return r.newest, conflict("%d of %d clients have not confirmed that they have the key, and would be cut off: %s", r.clients.Lack.N, r.clients.Total, r.clients.Lack).
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

// list returns the keys that all members have.
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
		reply.Messages[name] = "it has failed: it was not queried"
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
		reply.Messages["clients"] = fmt.Sprintf("%d of %d have no such key, or have not reported their keys: %s", n.N, r.clients.Total, n)
	}
	return reply
}

// count returns how many clients have the key with a fingerprint; nil: this server does not lead, so it does not know.
func (k *Keys) count(print string) *clientCount {
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
		has, reported := s.keys[n.ID]
		seen[n.ID] = true
		if m, heard := s.Member(n.ID); n.Status != structs.NodeStatusReady || !reported && (!heard || m.Role != clientpool.RoleClient || !m.Alive()) {
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

// answerKeys adds to the answer to a client's heartbeat what it needs of the servers' ring, and remembers which keys it has.
func (s *Pool) answerKeys(nodeID string, has *structs.GossipKeys, to *structs.ClientGossip) {
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

// KeepSame takes newer rings from other servers whenever one comes or goes, and once in a while, until ctx ends: one that was away
// has not heard of a change.
func (k *Keys) KeepSame(ctx context.Context) {
	changed, cancel := k.servers.Subscribe()
	defer cancel()
	look := time.NewTicker(clientKeysLook)
	defer look.Stop()
	for {
		if k.clients.ring != nil && k.servers.Encrypted() {
			r, err := k.query(ctx, clientKeyCommand{Op: clientKeysGet})
			if err == nil && r.newest.Supersedes(k.clients.ring.State()) {
				err = k.take(r.newest)
			}
			if err != nil && ctx.Err() == nil && k.clients.logLimit.Allow("keys "+err.Error(), time.Now()) {
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
