package client

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nomadish/nomadish/structs"
	"github.com/nomadish/nomadish/structs/wire"
)

// servers is where the servers are and which of them is spoken with: one, until
// it cannot be reached. All nodes of a client share it and the session.
type servers struct {
	pool *wire.Pool
	seed []string // as configured; kept at the end of the list for good

	mu   sync.Mutex
	list []string
	at   int
}

func newServers(pool *wire.Pool, seed []string) *servers {
	return &servers{pool: pool, seed: seed, list: slices.Clone(seed)}
}

// learn takes the addresses that a server told of.
func (s *servers) learn(addrs []string) {
	if len(addrs) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	current := s.list[s.at]
	list := slices.Clone(addrs)
	for _, a := range s.seed {
		if !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	if !slices.Contains(list, current) {
		list = append(list, current)
	}
	s.list, s.at = list, slices.Index(list, current)
}

func (s *servers) current() (addr string, known int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list[s.at], len(s.list)
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
	moved := s.list[s.at] == addr && len(s.list) > 1
	if moved {
		s.at = (s.at + 1) % len(s.list)
	}
	s.mu.Unlock()
	if !moved {
		return
	}
	// What still waits on the old session would wait long for a server that hangs.
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if old, err := s.pool.Session(ctx, addr); err == nil {
		_ = old.Close()
	}
}

// call calls a unary method of a server, trying each of those known once. A limit
// above 0 bounds each try: a server that lets it pass counts as gone.
func (s *servers) call(ctx context.Context, limit time.Duration, method string, args, reply any) error {
	_, known := s.current()
	var err error
	for range known {
		addr, _ := s.current()
		err = s.try(ctx, addr, limit, method, args, reply)
		var said *structs.Error
		if err == nil || errors.As(err, &said) || ctx.Err() != nil {
			return err
		}
		s.giveUp(addr)
	}
	return err
}

func (s *servers) try(ctx context.Context, addr string, limit time.Duration, method string, args, reply any) error {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	return s.pool.Call(ctx, addr, method, args, reply)
}
