package users

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func mustParse(t *testing.T, entries ...string) Set {
	t.Helper()
	s, err := ParseSet(entries)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParseSet(t *testing.T) {
	s := mustParse(t, " root", "1000", "2000-2999", "a-b", "0-0")
	for id, want := range map[int]bool{0: true, 1: false, 999: false, 1000: true, 1001: false, 2000: true, 2999: true, 3000: false} {
		if s.HasID(id) != want {
			t.Errorf("%d: %v", id, !want)
		}
	}
	if (Set{}).HasID(0) || !(Set{}).Empty() || s.Empty() {
		t.Error("an empty set")
	}
	for _, bad := range []string{"", " ", "2-1", "-1", "1-", "1-x", "4294967296", "a b", "a,b", "1:2"} {
		if _, err := ParseSet([]string{bad}); err == nil || !strings.Contains(err.Error(), "must be") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestPolicy(t *testing.T) {
	root, nobody, other := User{Name: "root"}, User{Name: "nobody", UID: 65534}, User{Name: "jo", UID: 1500}
	p := Policy{Denied: mustParse(t, "root", "65534"), DeniedBy: map[string]Set{"exec": mustParse(t, "jo")}}
	only := Policy{Allowed: mustParse(t, "1000-1999", "nobody"), Denied: mustParse(t, "nobody")}
	for _, row := range []struct {
		name   string
		p      Policy
		driver string
		u      User
		want   string
	}{
		{"no policy", Policy{}, "raw_exec", root, ""},
		{"denied by name", p, "raw_exec", root, "denied"},
		{"another name of one that is denied", p, "raw_exec", User{Name: "toor"}, "denied"},
		{"denied by number", p, "raw_exec", nobody, "denied"},
		{"not denied", p, "raw_exec", other, ""},
		{"denied for a driver", p, "exec", other, "user.denylist"},
		{"allowed", only, "raw_exec", other, ""},
		{"not allowed", only, "raw_exec", root, "not among"},
		{"allowed and denied", only, "raw_exec", nobody, "denied"},
	} {
		err := row.p.Check(row.driver, row.u)
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
}

func TestLookup(t *testing.T) {
	own, err := Lookup("")
	if err != nil || !own.Own() || own.UID != os.Geteuid() || own.Name == "" {
		t.Errorf("%+v, %v", own, err)
	}
	byName, err := Lookup("root")
	byNumber, nerr := Lookup("0")
	if err != nil || nerr != nil || byName.UID != 0 || byNumber.Name != "root" || byNumber.Groups[0] != 0 {
		t.Errorf("%+v, %v; %+v, %v", byName, err, byNumber, nerr)
	}
	if _, err := Lookup("no-such-user"); err == nil || !strings.Contains(err.Error(), `"no-such-user"`) {
		t.Error(err)
	}
}

func TestCheckEnter(t *testing.T) {
	base := t.TempDir()
	// The way to the directories of tests is closed to others, so it must be open here.
	if err := os.Chmod(filepath.Dir(base), 0o711); err != nil { // empty but for this test
		t.Fatal(err)
	}
	closed := filepath.Join(base, "closed")
	below := filepath.Join(closed, "allocs")
	if err := os.MkdirAll(below, 0o711); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(below, link); err != nil {
		t.Fatal(err)
	}
	own, err := Lookup("")
	if err != nil {
		t.Fatal(err)
	}
	unknown := User{Name: "stranger", UID: own.UID + 12345, GID: own.GID + 12345, Groups: []int{own.GID + 12345}}
	mate := unknown
	mate.Groups = append(mate.Groups, own.GID)
	for _, row := range []struct {
		mode os.FileMode
		u    User
		path string
		want string
	}{
		{0o711, unknown, below, ""},
		{0o700, unknown, below, `user "stranger" cannot enter ` + closed + " (mode 0700, owner " + own.Name + "): allow it with chmod 711 " + closed + ", or"},
		{0o750, unknown, below, "chmod 751 " + closed},
		{0o750, unknown, link, "chmod 751 " + closed},
		{0o750, mate, below, ""},
		{0o705, mate, below, "mode 0705"},
		{0o700, own, below, ""},
		{0o700, User{Name: "root"}, below, ""},
		{0o711, unknown, filepath.Join(base, "none"), "no such file"},
	} {
		if err := os.Chmod(closed, row.mode); err != nil {
			t.Fatal(err)
		}
		err := CheckEnter(row.path, row.u)
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("mode %o, %s: %v, want %q", row.mode, row.u.Name, err, row.want)
		}
		var ce *ClosedError
		if strings.Contains(row.want, "chmod") && !errors.As(err, &ce) {
			t.Errorf("%T", err)
		}
	}
}
