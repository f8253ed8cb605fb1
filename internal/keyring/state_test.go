package keyring

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/structs"
)

// TestStates: a ring is replaced by newer ones only, is kept, and is read by those alone who have a key of it.
func TestStates(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	open := func() *Ring {
		t.Helper()
		k, err := Open(path, "encrypt", []byte(keyA), hclog.NewNullLogger())
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	k := open()
	keys := func(texts ...string) [][]byte {
		var out [][]byte
		for _, text := range texts {
			out = append(out, []byte(text))
		}
		return out
	}
	for i, step := range []struct {
		s     State
		taken bool
		bad   bool
		want  string
	}{
		{State{0, keys(keyB)}, false, false, "a"},
		{State{2, keys(keyA, keyB)}, true, false, "ab"},
		{State{1, keys(keyB)}, false, false, "ab"},
		{State{2, keys(keyA, keyB)}, false, false, "ab"},
		{State{3, nil}, false, true, "ab"},
		{State{3, keys("short")}, false, true, "ab"},
		{State{3, keys(keyD, keyB)}, true, false, "db"},
	} {
		taken, err := k.Take(step.s)
		if taken != step.taken || (err != nil) != step.bad || !sameKeys(k.State().Keys, step.want) {
			t.Fatalf("step %d: %v, %v, then %d keys", i, taken, err, len(k.State().Keys))
		}
		if was, now := k.State(), open().State(); i > 0 && (was.Version != now.Version || was.Supersedes(now) || now.Supersedes(was)) {
			t.Fatalf("step %d: kept is version %d of %d", i, now.Version, was.Version)
		}
	}
	one, other := State{2, keys(keyA, keyB)}, State{2, keys(keyA, keyC)}
	if one.Supersedes(other) == other.Supersedes(one) || (State{2, keys(keyA, keyC, keyB)}).Supersedes(State{2, keys(keyA, keyB, keyC)}) {
		t.Error("of two of one version it is not one everywhere")
	}
	sealed, err := k.Seal([]string{Print([]byte(keyA)), Print([]byte(keyB))})
	if err != nil || len(sealed) == 0 || bytes.Contains(sealed, []byte(keyD)) {
		t.Fatalf("sealed: %d bytes, %v", len(sealed), err)
	}
	if s, err := ring(t, keyA, keyB).Unseal(sealed); err != nil || s.Version != 3 || !s.Has([]byte(keyD)) {
		t.Errorf("unsealed: version %d, %v", s.Version, err)
	}
	if _, err := ring(t, keyA).Unseal(sealed); err == nil {
		t.Error("it is unsealed without the key")
	}
	sealed[len(sealed)-1] ^= 1
	if _, err := ring(t, keyB).Unseal(sealed); err == nil {
		t.Error("it is taken though it was changed")
	}
	if _, err := ring(t, keyB).Unseal([]byte("x")); err == nil {
		t.Error("a short one is taken")
	}
	if none, err := k.Seal([]string{Print([]byte(keyA))}); none != nil || err != nil {
		t.Errorf("sealed for one that has none: %v", err)
	}
	s, err := k.State().With(structs.KeyInstall, []byte(keyC))
	if err != nil || s.Version != 4 || k.State().Has([]byte(keyC)) {
		t.Errorf("what comes of it: version %d, %v", s.Version, err)
	}
	if same, err := s.With(structs.KeyInstall, []byte(keyC)); err != nil || same.Version != 4 {
		t.Errorf("done again: version %d, %v", same.Version, err)
	}
}

func sameKeys(keys [][]byte, want string) bool {
	got := ""
	for _, key := range keys {
		got += string(key[:1])
	}
	return got == want
}
