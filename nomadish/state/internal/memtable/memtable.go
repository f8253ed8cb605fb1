// Package memtable makes keys and indexes of go-memdb's tables from the types of their rows, and reads rows as these types.
//
// The package stands apart because it knows no table: which there are, and who is woken when they change, is for
// nomadish/state, which alone may use it. It shows types of go-memdb, which must not leave nomadish/state.
package memtable

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadish/nomadish/structs"
)

// Key makes an index key of parts: each ends with a zero byte, which no part may
// hold, see [CheckKey].
func Key(parts ...string) []byte {
	n := len(parts)
	for _, p := range parts {
		n += len(p)
	}
	return appendKey(make([]byte, 0, n), parts...)
}

func appendKey(out []byte, parts ...string) []byte {
	for _, p := range parts {
		out = append(out, p...)
		out = append(out, 0)
	}
	return out
}

// CheckKey returns an error if an identifier cannot be a part of a key.
func CheckKey(what, id string) error {
	switch {
	case id == "":
		return structs.Errorf(structs.CodeBadRequest, "%s: empty", what)
	case len(id) > 1024:
		return structs.Errorf(structs.CodeTooLarge, "%s of %d bytes: allowed are 1024", what, len(id))
	case strings.ContainsRune(id, 0):
		return structs.Errorf(structs.CodeBadRequest, "%s %q: contains a zero byte", what, id)
	}
	return nil
}

// KeyNumber is Key with a number at its end, in the order of numbers.
func KeyNumber(n uint64, parts ...string) []byte {
	return binary.BigEndian.AppendUint64(Key(parts...), n)
}

// Indexer makes keys from rows of type T; arguments are the key's parts. The last
// argument of a prefix may be any beginning of its part.
type Indexer[T any] struct{ Of func(*T) []byte } // its nil: the row is not in the index

// FromObject is for memdb.
func (x Indexer[T]) FromObject(raw any) (bool, []byte, error) {
	row, ok := raw.(*T)
	if !ok {
		return false, nil, fmt.Errorf("index row: have %T, want %T", raw, row)
	}
	k := x.Of(row)
	return k != nil, k, nil
}

// rawKey is a whole key as the argument of a read.
type rawKey []byte

// FromArgs is for memdb.
func (x Indexer[T]) FromArgs(args ...any) ([]byte, error) {
	n := 0
	for _, arg := range args {
		switch v := arg.(type) {
		case string:
			n += len(v) + 1
		case rawKey:
			n += len(v)
		default:
			n += 8
		}
	}
	out := make([]byte, 0, n)
	for _, arg := range args {
		switch v := arg.(type) {
		case string:
			out = append(append(out, v...), 0)
		case uint64:
			out = binary.BigEndian.AppendUint64(out, v)
		case rawKey:
			out = append(out, v...)
		default:
			return nil, fmt.Errorf("index argument %T: want string or uint64", arg)
		}
	}
	return out, nil
}

// PrefixFromArgs is for memdb.
func (x Indexer[T]) PrefixFromArgs(args ...any) ([]byte, error) {
	out, err := x.FromArgs(args...)
	if n := len(args); err == nil && n > 0 {
		if _, text := args[n-1].(string); text {
			out = out[:len(out)-1]
		}
	}
	return out, err
}

// Index is an index of a table.
type Index = memdb.IndexSchema

// Indexes that every table has.
const (
	ByID     = "id"
	ByPrefix = "id_prefix" // the rows whose key begins with what is given
)

// UniqueBy is the index ByID, which memdb wants of every table: one row a key.
func UniqueBy[T any](of func(*T) []byte) *memdb.IndexSchema {
	return &memdb.IndexSchema{Name: ByID, Unique: true, Indexer: Indexer[T]{Of: of}}
}

// Also is a secondary index: any number of rows a key, and rows that are not in it.
func Also[T any](name string, of func(*T) []byte) *memdb.IndexSchema {
	return &memdb.IndexSchema{Name: name, AllowMissing: true, Indexer: Indexer[T]{Of: of}}
}
