// Package indexkey has the keys by which the tables of nomadish/state find their rows:
// types that know their order, as persist.Tree wants them, and that take less memory or
// time than strings do.
//
// A key stands for a string that anybody may have chosen: every string is a key of one
// type at least, and two keys of a type are equal only if their strings are. Equal
// strings have equal keys on every replica, whatever the process.
//
// The package must never read a clock or chance (a seeded hash is chance), and knows
// nothing of what the keys name.
package indexkey

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"strings"
)

// Text is a string as a key, in the order of strings.
type Text string

// Compare orders texts as strings.Compare does.
func (t Text) Compare(other Text) int { return strings.Compare(string(t), string(other)) }

// Hashed is a string as a key of what is never walked in order: it goes by the string's
// hash first, so that a search reads no other string.
type Hashed struct {
	hash uint64
	text string
}

// Hash returns the key of a string.
func Hash(s string) Hashed {
	h := uint64(14695981039346656037) // FNV-1a, 64 bits
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return Hashed{h, s}
}

// HashJob returns the key of a job. A namespace holds no zero byte.
func HashJob(ns, id string) Hashed { return Hash(ns + "\x00" + id) }

// String returns the string that the key is of.
func (l Hashed) String() string { return l.text }

// Compare orders keys by their hashes, then by their strings.
func (l Hashed) Compare(other Hashed) int {
	if l.hash != other.hash {
		return cmp.Compare(l.hash, other.hash)
	}
	return strings.Compare(l.text, other.text)
}

// UUID is an ID in the canonical form of UUIDs: 36 characters, lower case. Its order
// is that of the strings.
type UUID struct{ hi, lo uint64 }

// Compare orders IDs as their strings.
func (u UUID) Compare(other UUID) int {
	if u.hi != other.hi {
		return cmp.Compare(u.hi, other.hi)
	}
	return cmp.Compare(u.lo, other.lo)
}

// UUIDLen is the length of a UUID in its canonical form.
const UUIDLen = 36

// uuidDash reports whether a UUID has a dash at index i.
func uuidDash(i int) bool { return i == 8 || i == 13 || i == 18 || i == 23 }

// digits holds the value of a hexadecimal digit in lower case, 255 of anything else.
var digits = func() (d [256]byte) {
	for i := range d {
		d[i] = 255
	}
	for i := range 10 {
		d['0'+i] = byte(i) // a digit
	}
	for i := range 6 {
		d['a'+i] = byte(10 + i) // a digit
	}
	return d
}()

// ParseUUID reads an ID, and reports whether it is a UUID in the canonical form.
func ParseUUID(s string) (UUID, bool) {
	if len(s) != UUIDLen {
		return UUID{}, false
	}
	return FillUUID(s, '0')
}

// FillUUID reads the beginning of an ID, taking every character that is missing for
// fill ('0': the first ID that begins so, 'f': the last). It reports whether any UUID
// begins like this.
func FillUUID(s string, fill byte) (u UUID, ok bool) {
	if len(s) > UUIDLen {
		return UUID{}, false
	}
	for i := range UUIDLen {
		c := fill
		if i < len(s) {
			c = s[i]
			if uuidDash(i) != (c == '-') {
				return UUID{}, false
			}
		}
		if uuidDash(i) {
			continue
		}
		d := digits[c]
		if d == 255 {
			return UUID{}, false
		}
		u.hi = u.hi<<4 | u.lo>>60
		u.lo = u.lo<<4 | uint64(d)
	}
	return u, true
}

// String returns the canonical form.
func (u UUID) String() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], u.hi)
	binary.BigEndian.PutUint64(b[8:], u.lo)
	var out [UUIDLen]byte
	hex.Encode(out[0:8], b[0:4])
	hex.Encode(out[9:13], b[4:6])
	hex.Encode(out[14:18], b[6:8])
	hex.Encode(out[19:23], b[8:10])
	hex.Encode(out[24:36], b[10:16])
	out[8], out[13], out[18], out[23] = '-', '-', '-', '-'
	return string(out[:])
}
