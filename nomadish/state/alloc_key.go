package state

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// ordinal numbers the rows of allocations. It is nobody's business but this
// package's: a restored replica numbers them otherwise. Numbers of rows that are
// gone are used again, so that 32 bits are enough.
type ordinal uint32

func (o ordinal) Compare(other ordinal) int { return cmp.Compare(o, other) }

// text is a string as a key.
type text string

func (t text) Compare(other text) int { return strings.Compare(string(t), string(other)) }

// label is a string as a key of what is never walked in order: by its hash first, so
// that a search reads no other string.
type label struct {
	hash uint64
	text string
}

func labelOf(s string) label {
	h := uint64(14695981039346656037) // FNV-1a, 64 bits
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return label{h, s}
}

func (l label) Compare(other label) int {
	if l.hash != other.hash {
		return cmp.Compare(l.hash, other.hash)
	}
	return strings.Compare(l.text, other.text)
}

// uuid is an ID in the canonical form of UUIDs: 36 characters, lower case. Its order
// is that of the strings.
type uuid struct{ hi, lo uint64 }

func (u uuid) Compare(other uuid) int {
	if u.hi != other.hi {
		return cmp.Compare(u.hi, other.hi)
	}
	return cmp.Compare(u.lo, other.lo)
}

const uuidLen = 36

// uuidDash tells where a UUID has its dashes.
func uuidDash(i int) bool { return i == 8 || i == 13 || i == 18 || i == 23 }

// digits gives the value of a hexadecimal digit in lower case, 255 of anything else.
var digits = func() (d [256]byte) {
	for i := range d {
		d[i] = 255
	}
	for i := range 10 {
		d['0'+i] = byte(i) //nolint:gosec // a digit
	}
	for i := range 6 {
		d['a'+i] = byte(10 + i) //nolint:gosec // a digit
	}
	return d
}()

// parseUUID reads an ID; false: it has another form.
func parseUUID(s string) (uuid, bool) {
	if len(s) != uuidLen {
		return uuid{}, false
	}
	return fillUUID(s, '0')
}

// fillUUID reads the beginning of an ID, taking every character that is missing for
// fill. False: no UUID begins like this.
func fillUUID(s string, fill byte) (u uuid, ok bool) {
	if len(s) > uuidLen {
		return uuid{}, false
	}
	for i := range uuidLen {
		c := fill
		if i < len(s) {
			c = s[i]
			if uuidDash(i) != (c == '-') {
				return uuid{}, false
			}
		}
		if uuidDash(i) {
			continue
		}
		d := digits[c]
		if d == 255 {
			return uuid{}, false
		}
		u.hi = u.hi<<4 | u.lo>>60
		u.lo = u.lo<<4 | uint64(d)
	}
	return u, true
}

// String gives the canonical form.
func (u uuid) String() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], u.hi)
	binary.BigEndian.PutUint64(b[8:], u.lo)
	var out [uuidLen]byte
	hex.Encode(out[0:8], b[0:4])
	hex.Encode(out[9:13], b[4:6])
	hex.Encode(out[14:18], b[6:8])
	hex.Encode(out[19:23], b[8:10])
	hex.Encode(out[24:36], b[10:16])
	out[8], out[13], out[18], out[23] = '-', '-', '-', '-'
	return string(out[:])
}

// status is an allocation's status as a number; see statusNames.
type status uint8

// otherStatus is a status without a number: a newer version's, or none. The row's
// notes have its name.
const otherStatus status = 255

var statusNames = []string{
	structs.AllocDesiredRun, structs.AllocDesiredStop, structs.AllocDesiredEvict,
	structs.AllocClientPending, structs.AllocClientRunning, structs.AllocClientComplete,
	structs.AllocClientFailed, structs.AllocClientLost, structs.AllocClientUnknown,
	structs.AllocDesiredSuspend, structs.AllocClientSuspended,
}

func statusOf(name string) status {
	for i, n := range statusNames {
		if n == name {
			return status(i) //nolint:gosec // a few
		}
	}
	return otherStatus
}
