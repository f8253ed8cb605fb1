package keyring

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/memberlist"

	"github.com/nomadish/nomadish/structs"
)

// State is a whole ring. Servers change the keys of their own gossip one by one, all at once; the clients' ring goes from server to
// client at each one's own time, and to those that come later: so it is replaced as a whole, by a newer one only.
type State struct {
	// Version counts the changes; 0: the keys are as configured, and are no newer than any others.
	Version uint64
	Keys    [][]byte // the one that encrypts first
}

// check returns what is wrong with a ring. Its errors contain no key.
func (s State) check() error {
	if len(s.Keys) == 0 || len(s.Keys) > MaxKeys {
		return fmt.Errorf("%d keys: there must be 1 to %d", len(s.Keys), MaxKeys)
	}
	for i, key := range s.Keys {
		if memberlist.ValidateKey(key) != nil {
			return fmt.Errorf("key %d of %d is not 16, 24 or 32 bytes in base64", i+1, len(s.Keys))
		}
		if index(s.Keys[:i], key) >= 0 {
			return fmt.Errorf("key %d of %d is there twice", i+1, len(s.Keys))
		}
	}
	return nil
}

// Supersedes reports whether s takes the place of another. Of two of one version, changed at the same time, it is the same one everywhere.
func (s State) Supersedes(than State) bool {
	if s.Version != than.Version || s.Version == 0 {
		return s.Version > than.Version
	}
	return slices.CompareFunc(ordered(s.Keys), ordered(than.Keys), bytes.Compare) > 0
}

// ordered is a ring's keys in one order: the first one, which matters, and the others.
func ordered(keys [][]byte) [][]byte {
	out := slices.Clone(keys)
	slices.SortFunc(out[1:], bytes.Compare)
	return out
}

// With is the ring that comes of an operation; the same version: nothing changes.
func (s State) With(op string, key []byte) (State, error) {
	if err := Check(key); err != nil {
		return s, err
	}
	next, err := with(s.Keys, op, key)
	if err != nil || len(next) == len(s.Keys) && bytes.Equal(next[0], s.Keys[0]) {
		return s, err
	}
	return State{Version: s.Version + 1, Keys: next}, nil
}

// Has reports whether a key is among them.
func (s State) Has(key []byte) bool { return index(s.Keys, key) >= 0 }

// State is the ring as it is.
func (k *Ring) State() State {
	k.mu.Lock()
	defer k.mu.Unlock()
	return State{Version: k.version, Keys: ordered(k.ring.GetKeys())}
}

// Take puts a newer ring in the place of this one; false: it is none. It is on disk before it is used; after an error all is as before.
func (k *Ring) Take(s State) (bool, error) {
	if err := s.check(); err != nil {
		return false, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !s.Supersedes(State{Version: k.version, Keys: k.ring.GetKeys()}) {
		return false, nil
	}
	if err := k.keep(s); err != nil {
		return false, err
	}
	k.version = s.Version
	for _, key := range s.Keys {
		if err := k.ring.AddKey(key); err != nil {
			return false, err
		}
	}
	if err := k.ring.UseKey(s.Keys[0]); err != nil {
		return false, err
	}
	for _, key := range k.ring.GetKeys() {
		if s.Has(key) {
			continue
		}
		keys := k.ring.GetKeys()
		if err := k.remove(keys, index(keys, key)); err != nil {
			return false, err
		}
	}
	return true, nil
}

// Prints are fingerprints of the keys, by which members compare the keys that they have without sending them.
func (k *Ring) Prints() structs.GossipKeys {
	s := k.State()
	out := structs.GossipKeys{Version: s.Version}
	for _, key := range s.Keys {
		out.Prints = append(out.Prints, Print(key))
	}
	return out
}

// Print is a key's fingerprint.
func Print(key []byte) string {
	const size = 6 // bytes: enough to distinguish a few keys
	return hex.EncodeToString(derived(key, "nomadish gossip key: fingerprint")[:size])
}

// derived is a key for one purpose.
func derived(key []byte, purpose string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(purpose))
	return mac.Sum(nil)
}

const sealing = "nomadish gossip key: sealing a ring"

func sealer(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(derived(key, sealing))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// Seal encrypts the ring for one that has some of its keys: with the first of them, so that whoever has none of them learns nothing,
// even where RPC is not encrypted. nil: it has none.
func (k *Ring) Seal(prints []string) ([]byte, error) {
	s := k.State()
	at := slices.IndexFunc(s.Keys, func(key []byte) bool { return slices.Contains(prints, Print(key)) })
	if at < 0 {
		return nil, nil
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	box, err := sealer(s.Keys[at])
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, box.NonceSize())
	_, _ = rand.Read(nonce) // never fails since Go 1.24
	return box.Seal(nonce, nonce, raw, nil), nil
}

// Unseal reads what Seal has made with a key of this ring.
func (k *Ring) Unseal(sealed []byte) (State, error) {
	for _, key := range k.Keys() {
		box, err := sealer(key)
		if err != nil {
			return State{}, err
		}
		if len(sealed) < box.NonceSize() {
			break
		}
		raw, err := box.Open(nil, sealed[:box.NonceSize()], sealed[box.NonceSize():], nil)
		if err != nil {
			continue
		}
		var s State
		if json.Unmarshal(raw, &s) != nil {
			return State{}, errors.New("a ring that cannot be read")
		}
		return s, s.check()
	}
	return State{}, errors.New("it is sealed with no key of this ring")
}
