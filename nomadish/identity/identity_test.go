package identity

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// database is a user database of tests.
type database struct {
	users   map[string][]string
	groups  map[string]bool
	lookups atomic.Int64
	delay   time.Duration
}

func (d *database) Groups(user string) ([]string, bool) {
	d.lookups.Add(1)
	time.Sleep(d.delay)
	groups, known := d.users[user]
	return groups, known
}

func (d *database) HasGroup(name string) bool {
	d.lookups.Add(1)
	time.Sleep(d.delay)
	return d.groups[name]
}

func newDatabase() *database {
	return &database{users: map[string][]string{"ada": {"users", "chip", "users"}}, groups: map[string]bool{"chip": true}}
}

// TestSubmitter: a user is believed where the servers trust the header, with the groups of the database and no others.
func TestSubmitter(t *testing.T) {
	s := New(Options{Trust: true, Database: newDatabase()})
	got, known, err := s.Submitter(t.Context(), `job "web"`, "ada")
	if err != nil || !known || got.User != "ada" || !slices.Equal(got.Groups, []string{"chip", "users"}) || got.Source != structs.SubmitterSourceHeader {
		t.Errorf("ada: %+v, %v, %v", got, known, err)
	}
	if got, known, err = s.Submitter(t.Context(), `job "web"`, "eve"); err != nil || known || got.User != "eve" || len(got.Groups) > 0 {
		t.Errorf("somebody who is not known: %+v, %v, %v", got, known, err)
	}
	if got, _, err = s.Submitter(t.Context(), `job "web"`, ""); err != nil || got != nil {
		t.Errorf("nobody: %+v, %v", got, err)
	}
	for _, bad := range []string{"-x", "a b", "a\n", strings.Repeat("a", 65), "ä"} {
		if err := s.Check(`job "web"`, bad); structs.CodeOf(err) != structs.CodeBadRequest || !strings.Contains(err.Error(), "letters, digits") {
			t.Errorf("user %q: %v", bad, err)
		}
	}
	s = New(Options{Database: newDatabase()})
	if _, _, err := s.Submitter(t.Context(), `job "web"`, "ada"); structs.CodeOf(err) != structs.CodeForbidden || !strings.Contains(err.Error(), "trust_user_header") {
		t.Errorf("where nobody is trusted: %v", err)
	}
}

// TestMembers: the first user or group that the database does not have is named, with what states it.
func TestMembers(t *testing.T) {
	s := New(Options{Database: newDatabase()})
	check := func(want string, lists ...Members) {
		t.Helper()
		err := s.CheckMembers(t.Context(), `project "p"`, lists...)
		if want == "" && err != nil || want != "" && (structs.CodeOf(err) != structs.CodeBadRequest || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	check("", Members{Field: "users", Names: []string{"ada"}}, Members{Field: "groups", Names: []string{"chip"}, Group: true})
	check(`project "p": users: the servers' user database has no user "chip"`, Members{Field: "users", Names: []string{"ada", "chip"}})
	check(`project "p": groups: the servers' user database has no group "ada"`, Members{Field: "groups", Names: []string{"ada"}, Group: true})
}

// TestCache: who was found is not looked up again for a while, and who was not is.
func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase()
		s := New(Options{Trust: true, Database: d})
		lookup := func(user string, want int64) {
			t.Helper()
			before := d.lookups.Load()
			if _, _, err := s.Submitter(t.Context(), "x", user); err != nil {
				t.Fatal(err)
			}
			if got := d.lookups.Load() - before; got != want {
				t.Errorf("%s: %d lookups, want %d", user, got, want)
			}
		}
		lookup("ada", 1)
		lookup("ada", 0)
		lookup("bob", 1)
		lookup("bob", 1)
		time.Sleep(cacheFor)
		lookup("ada", 1)
	})
}

// TestSlowDatabase: a database that does not answer fails a request in time, and no more than a few lookups wait for it.
func TestSlowDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase()
		d.delay = time.Hour
		s := New(Options{Trust: true, Database: d})
		for range maxLookups + 3 {
			begin := time.Now()
			_, _, err := s.Submitter(t.Context(), `job "web"`, "ada")
			if structs.CodeOf(err) != structs.CodeLimited || !strings.Contains(err.Error(), `job "web": the user database of the server has not answered in time`) || time.Since(begin) != lookupTimeout {
				t.Fatalf("%v after %s", err, time.Since(begin))
			}
		}
		if n := d.lookups.Load(); n != maxLookups {
			t.Errorf("%d lookups wait", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.CheckMembers(ctx, "x", Members{Field: "users", Names: []string{"ada"}}); err == nil {
			t.Error("a request that was called off is answered")
		}
		time.Sleep(2 * time.Hour)
	})
}

// TestMachine: root and its group are known on every machine.
func TestMachine(t *testing.T) {
	if groups, known := (machine{}).Groups("root"); !known || !slices.Contains(groups, "root") || !(machine{}).HasGroup("root") {
		t.Errorf("root: %v, %v", groups, known)
	}
	if groups, known := (machine{}).Groups("no-such-user"); known || len(groups) > 0 || (machine{}).HasGroup("no-such-group") {
		t.Errorf("somebody else: %v, %v", groups, known)
	}
}
