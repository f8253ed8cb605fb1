package client

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// servers is where the servers are and which of them is spoken with: one, until
// it cannot be reached. Nodes that share it share the session.
type servers struct {
	pool *wire.Pool

	mu   sync.Mutex
	seed []string // as configured, or set since; kept at the end of the list for good
	list []string // as configured, and as learned from servers; may be empty at first
	at   int
	// hints are what gossip reports to be servers, newest first: anybody may claim that there. They are tried when of
	// the list nobody answers.
	hints []string
}

// maxHints bounds what is remembered of the gossip's word.
const maxHints = 16

// errNoServer: the gossip has not named any yet.
var errNoServer = errors.New("no server is known yet; waiting for the clients' gossip to name one")

func newServers(pool *wire.Pool, seed []string) *servers {
	return &servers{pool: pool, seed: seed, list: slices.Clone(seed)}
}

// learn takes the addresses that a server named.
func (s *servers) learn(addrs []string) {
	if len(addrs) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	current := ""
	if len(s.list) > 0 {
		current = s.list[s.at]
	}
	list := slices.Clone(addrs)
	for _, a := range s.seed {
		if !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	if current != "" && !slices.Contains(list, current) {
		list = append(list, current)
	}
	s.list, s.at = list, max(0, slices.Index(list, current))
}

// set replaces the addresses, those that were configured too.
func (s *servers) set(addrs []string) {
	s.mu.Lock()
	current := ""
	if len(s.list) > 0 {
		current = s.list[s.at]
	}
	at := slices.Index(addrs, current)
	s.seed, s.list, s.at, s.hints = slices.Clone(addrs), slices.Clone(addrs), max(0, at), nil
	s.mu.Unlock()
	if at < 0 && current != "" {
		s.pool.Drop(current) // what waits on that session is to turn to the others
	}
}

// hint takes the address of what gossip reports to be a server.
func (s *servers) hint(addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hints = slices.DeleteFunc(s.hints, func(a string) bool { return a == addr })
	s.hints = slices.Insert(s.hints, 0, addr)
	s.hints = s.hints[:min(len(s.hints), maxHints)]
}

// unconfirmed are the hints that are not in the list.
func (s *servers) unconfirmed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.hints), func(a string) bool { return slices.Contains(s.list, a) })
}

// adopt turns to a server that was a hint only, and has answered.
func (s *servers) adopt(addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.list, addr) {
		s.list = append(s.list, addr)
	}
	s.at = slices.Index(s.list, addr)
}

func (s *servers) current() (addr string, known int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == 0 {
		return "", 0
	}
	return s.list[s.at], len(s.list)
}

// known reports whether there is any.
func (s *servers) known() bool {
	_, known := s.current()
	return known > 0
}

// all are the servers known, the one that is spoken with first.
func (s *servers) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(s.list[s.at:], s.list[:s.at])
}

// giveUp turns to the next server, unless somebody has already.
func (s *servers) giveUp(addr string) {
	s.mu.Lock()
	moved := len(s.list) > 1 && s.list[s.at] == addr
	if moved {
		s.at = (s.at + 1) % len(s.list)
	}
	s.mu.Unlock()
	if !moved {
		return
	}
	s.pool.Drop(addr) // what still waits on the old session would wait long for a server that hangs
}

// call calls a unary method of a server, trying each of those known once. A limit
// above 0 bounds each try: a server that lets it pass counts as gone, and so does one that
// knows no leader. What is called may be called twice.
func (s *servers) call(ctx context.Context, limit time.Duration, method string, args, reply any) error {
	_, known := s.current()
	err := errNoServer
	for range known {
		addr, _ := s.current()
		tried := s.try(ctx, addr, limit, method, args, reply)
		if tried == nil || answered(tried) || ctx.Err() != nil {
			return tried
		}
		err = moreSpecific(err, tried)
		s.giveUp(addr)
	}
	for _, addr := range s.unconfirmed() {
		hinted := s.try(ctx, addr, limit, method, args, reply)
		if hinted == nil || answered(hinted) {
			s.adopt(addr)
			return hinted
		}
		if err = moreSpecific(err, hinted); ctx.Err() != nil {
			break
		}
	}
	return err
}

// moreSpecific returns the more specific error: a server's answer rather than that another was not reached.
func moreSpecific(before, now error) error {
	if spoke(before) && !spoke(now) {
		return before
	}
	return now
}

// answered reports whether an error is the cluster's answer. That of a server which knows no leader is not: it may be cut off from
// the others.
func answered(err error) bool {
	var answer *structs.Error
	return errors.As(err, &answer) && answer.Code != structs.CodeNoLeader && answer.Code != structs.CodeNotLeader
}

func (s *servers) try(ctx context.Context, addr string, limit time.Duration, method string, args, reply any) error {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	return s.pool.Call(ctx, addr, method, args, reply)
}
