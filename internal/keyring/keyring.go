// Package keyring is the keys that gossip is encrypted with, and how they are changed while
// agents run: on all members of a pool, by a query through its gossip, each of which keeps
// the new ring on disk before it reports that it has it. Pools of servers and of clients use it
// alike; which keys a pool has is no affair of another's, unless they share a ring.
//
// It must never log a key, or put one into an error.
package keyring

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/memberlist"

	"github.com/nomadish/nomadish/internal/atomicfile"
	"github.com/nomadish/nomadish/structs"
)

// MaxKeys bounds the keys of a ring: every packet of somebody else's is tried with each,
// and a member lists them in one packet.
const MaxKeys = 8

// Ring is the keys that an agent's gossip is encrypted with: all of them decrypt, the first
// encrypts. Pools may share one. It is safe for use by many goroutines.
type Ring struct {
	mu      sync.Mutex // locked while it is changed
	ring    *memberlist.Keyring
	version uint64 // of a ring that is replaced as a whole; see State
	path    string
}

// Open returns the keys in the file at path, or, as long as there is none, initial alone, which the
// configuration has as setting. The file is written when the ring is first changed, and rules from then on. path empty:
// changes are not kept. No key at all: nil, and the gossip goes in the clear.
func Open(path, setting string, initial []byte, logger hclog.Logger) (*Ring, error) {
	kept, err := readKeys(path)
	if err != nil {
		return nil, err
	}
	keys := kept.Keys
	switch {
	case len(keys) > 0 && len(initial) == 0:
		logger.Warn("gossip is encrypted with the keys that were kept, though the configuration has none; remove the file to have it in the clear", "file", path)
	case len(keys) > 0 && !bytes.Equal(keys[0], initial):
		logger.Info("gossip is encrypted with the keys that were kept; `"+setting+"` of the configuration is only the first key that there was", "file", path)
	case len(keys) == 0 && len(initial) == 0:
		return nil, nil // no keys are no fault
	case len(keys) == 0:
		if err := Check(initial); err != nil {
			return nil, fmt.Errorf("%s: %w", setting, err)
		}
		keys = [][]byte{initial}
	}
	ring, err := memberlist.NewKeyring(keys, keys[0])
	if err != nil {
		return nil, fmt.Errorf("gossip keys: %w", err)
	}
	return &Ring{ring: ring, version: kept.Version, path: path}, nil
}

// Check reports whether a key is one.
func Check(key []byte) error {
	if memberlist.ValidateKey(key) != nil {
		return structs.Errorf(structs.CodeBadRequest, "a key of %d bytes: allowed are 16, 24 and 32, in base64", len(key)).
			WithHint("`operator gossip keyring generate` makes one")
	}
	return nil
}

// Kept reports whether the file at path keeps keys, which Open would take.
func Kept(path string) bool {
	s, err := readKeys(path)
	return err == nil && len(s.Keys) > 0
}

// readKeys reads a file of keys; none: there is no file.
func readKeys(path string) (State, error) {
	if path == "" {
		return State{}, nil
	}
	raw, err := os.ReadFile(path) // the operator names the directory
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("read the gossip keys: %w", err)
	}
	s, err := parseKeys(raw)
	if err != nil {
		return State{}, fmt.Errorf("gossip keys in %s: %w; put it right, or remove it to begin with the key of the configuration", path, err)
	}
	return s, nil
}

// parseKeys reads a JSON list of keys in base64, the one that encrypts first, or a State. Its errors
// never contain what was read.
func parseKeys(raw []byte) (State, error) {
	var s State
	if json.Unmarshal(raw, &s.Keys) != nil && json.Unmarshal(raw, &s) != nil {
		return State{}, errors.New("not a JSON list of keys in base64")
	}
	return s, s.check()
}

func (k *Ring) keep(s State) error {
	if k.path == "" {
		return nil
	}
	var what any = s
	if s.Version == 0 {
		what = s.Keys
	}
	raw, err := json.MarshalIndent(what, "", "  ")
	if err == nil {
		err = atomicfile.Write(k.path, string(raw)+"\n")
	}
	if err != nil {
		return fmt.Errorf("keep the gossip keys: %w", err)
	}
	return nil
}

// Memberlist returns the ring for a pool's configuration.
func (k *Ring) Memberlist() *memberlist.Keyring { return k.ring }

// Keys are all keys, the one that encrypts first.
func (k *Ring) Keys() [][]byte { return k.ring.GetKeys() }

// Change does one of the operations structs.KeyInstall, KeyUse and KeyRemove. What is so
// already is done. The new ring is on disk before it is used; after an error all is as before.
func (k *Ring) Change(op string, key []byte) error {
	if err := Check(key); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	keys := k.ring.GetKeys()
	next, err := with(keys, op, key)
	if err != nil || len(next) == len(keys) && bytes.Equal(next[0], keys[0]) {
		return err
	}
	if err := k.keep(State{Version: k.version, Keys: next}); err != nil {
		return err
	}
	switch op {
	case structs.KeyInstall:
		return k.ring.AddKey(key)
	case structs.KeyUse:
		return k.ring.UseKey(key)
	}
	return k.remove(keys, index(keys, key))
}

// with is what becomes of keys.
func with(keys [][]byte, op string, key []byte) ([][]byte, error) {
	at, rest := index(keys, key), slices.Clone(keys)
	if at >= 0 {
		rest = slices.Delete(rest, at, at+1)
	}
	switch op {
	case structs.KeyInstall:
		switch {
		case at >= 0:
			return keys, nil
		case len(keys) >= MaxKeys:
			return nil, structs.Errorf(structs.CodeTooLarge, "there are %d keys already; remove those that are not used", len(keys))
		}
		return append(rest, key), nil
	case structs.KeyUse:
		if at < 0 {
			return nil, structs.Errorf(structs.CodeNotFound, "the key is not installed")
		}
		return slices.Insert(rest, 0, key), nil
	case structs.KeyRemove:
		if at == 0 {
			return nil, structs.Errorf(structs.CodeConflict, "the key is the one in use")
		}
		return rest, nil
	}
	return nil, structs.Errorf(structs.CodeUnsupported, "keyring operation %q: not known here", op)
}

func index(keys [][]byte, key []byte) int {
	return slices.IndexFunc(keys, func(one []byte) bool { return bytes.Equal(one, key) })
}

// remove takes a key off the ring. Memberlist closes the gap within the list that its readers
// use at the time; the last key leaves none. So those behind it are put before it first:
// for that moment packets go out under them, which are keys as good.
func (k *Ring) remove(keys [][]byte, at int) error {
	if behind := keys[at+1:]; len(behind) > 0 {
		order := append([][]byte{keys[0]}, behind...)
		for _, one := range slices.Backward(order) {
			if err := k.ring.UseKey(one); err != nil {
				return err
			}
		}
	}
	return k.ring.RemoveKey(keys[at])
}
