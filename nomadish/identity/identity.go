// Package identity is who sends a request, as the servers know it, and which users and groups there are. It must never take anything of
// that from the body of a request, and must not be used where log entries are applied: the user databases of servers may differ.
package identity

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// Limits of lookups. A database may be one of the network, which is slow or does not answer.
const (
	// lookupTimeout is how long the lookups for one request may take altogether.
	lookupTimeout = 5 * time.Second
	// maxLookups is how many lookups run at once. One that never ends keeps its place.
	maxLookups = 16
	// cacheFor is how long a user or a group that was found is not looked up again. Those that were not found are, as an operator may have
	// added them just now.
	cacheFor = 10 * time.Second
	// maxCached bounds the cache, which is emptied when it is full.
	maxCached = 10_000
)

// Database is a user database. Its methods may block, and are called by many goroutines.
type Database interface {
	// Groups returns the names of a user's groups, and false if there is no such user.
	Groups(user string) (groups []string, known bool)
	// HasGroup reports whether there is a group of the name.
	HasGroup(name string) bool
}

// Options are how a Source works.
type Options struct {
	// Trust: who sends a request is the user that its header X-Nomadish-User states. Otherwise such a request is refused.
	Trust bool
	// Database is the user database; nil: this machine's.
	Database Database
	// Timeout is how long the lookups for one request may take altogether; 0: 5 s.
	Timeout time.Duration
}

// Source answers who sends a request, and which users and groups there are. It is safe for use by many goroutines.
type Source struct {
	opts    Options
	lookups chan struct{}

	mu    sync.Mutex
	cache map[member]entry
}

// member is a user, or a group.
type member struct {
	name  string
	group bool
}

// entry is what was found of a member.
type entry struct {
	groups []string
	known  bool
	until  time.Time
}

// New returns a new Source.
func New(o Options) *Source {
	if o.Database == nil {
		o.Database = machine{}
	}
	if o.Timeout == 0 {
		o.Timeout = lookupTimeout
	}
	return &Source{opts: o, lookups: make(chan struct{}, maxLookups), cache: map[member]entry{}}
}

// Check returns an error if a request for what (job "web") may not be of the user that it states. "" states none, and may be.
func (s *Source) Check(what, user string) error {
	switch {
	case user == "":
		return nil
	case !s.opts.Trust:
		return structs.Errorf(structs.CodeForbidden, "%s: the request states the user %q, and this cluster's servers trust no such header", what, structs.Clip(user, structs.MaxUserBytes)).
			WithHint("leave it out (-user, -as, NOMADISH_USER or X-Nomadish-User), or set server { trust_user_header = true } if only who may state a user reaches the HTTP API")
	case !structs.ValidUser(user):
		return structs.Errorf(structs.CodeBadRequest, "%s: user %q: must be 1 to %d letters, digits, dots, dashes, underscores or @, and not begin with a dash",
			what, structs.Clip(user, structs.MaxUserBytes), structs.MaxUserBytes)
	}
	return nil
}

// Submitter returns the user that a request for what (job "web") states, with the user's groups as the database has them; known: it has the user. It
// is nil if the request states none.
func (s *Source) Submitter(ctx context.Context, what, user string) (submitter *structs.Submitter, known bool, err error) {
	if err := s.Check(what, user); err != nil || user == "" {
		return nil, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	found, err := s.lookup(ctx, member{name: user})
	if err != nil {
		return nil, false, structs.Errorf(structs.CodeOf(err), "%s: %w", what, err)
	}
	groups := slices.Clone(found.groups)
	slices.Sort(groups)
	return &structs.Submitter{User: user, Groups: slices.Compact(groups), Source: structs.SubmitterSourceHeader}, found.known, nil
}

// Members is a list of users, or of groups.
type Members struct {
	// Field is what states them, as in "slots 2: user".
	Field string
	Names []string
	Group bool // they are groups
}

// CheckMembers returns an error of CodeBadRequest for what (project "chip") that names the first user or group which the database does not have.
func (s *Source) CheckMembers(ctx context.Context, what string, lists ...Members) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	for _, list := range lists {
		for _, name := range list.Names {
			found, err := s.lookup(ctx, member{name, list.Group})
			if err != nil {
				return structs.Errorf(structs.CodeOf(err), "%s: %w", what, err)
			}
			if !found.known {
				kind := "user"
				if list.Group {
					kind = "group"
				}
				return structs.Errorf(structs.CodeBadRequest, "%s: %s: the servers' user database has no %s %q", what, list.Field, kind, structs.Clip(name, structs.MaxMemberName)).
					WithHint("correct the name, or state -force (HTTP: force=true) if the %s is yet to come, or is known to other machines only", kind)
			}
		}
	}
	return nil
}

// lookup returns what the database has of a user or a group. It returns an error if the database does not answer before ctx ends.
func (s *Source) lookup(ctx context.Context, m member) (entry, error) {
	if found, ok := s.cached(m); ok {
		return found, nil
	}
	slow := structs.Errorf(structs.CodeLimited, "the user database of the server has not answered in time").
		WithHint("try again; `getent passwd` on the leader's machine shows whether it answers")
	select {
	case s.lookups <- struct{}{}:
	case <-ctx.Done():
		return entry{}, slow
	}
	answer := make(chan entry, 1)
	go func() {
		defer func() { <-s.lookups }()
		answer <- s.read(m)
	}()
	select {
	case found := <-answer:
		return found, nil
	case <-ctx.Done():
		return entry{}, slow
	}
}

// read reads the database, and keeps what it finds for a while.
func (s *Source) read(m member) (found entry) {
	if m.group {
		found.known = s.opts.Database.HasGroup(m.name)
	} else {
		found.groups, found.known = s.opts.Database.Groups(m.name)
	}
	if found.known {
		found.until = time.Now().Add(cacheFor)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.cache) >= maxCached {
			clear(s.cache)
		}
		s.cache[m] = found
	}
	return found
}

// cached returns what was found of a member a short time ago.
func (s *Source) cached(m member) (entry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.cache[m]
	return found, ok && time.Now().Before(found.until)
}
