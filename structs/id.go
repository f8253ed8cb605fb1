package structs

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// DeriveID returns the n-th identifier of a seed: a UUID-shaped string (version 8, "custom") that
// is the same on every replica. Allocation IDs are made this way from their batch's seed, so that a
// batch of 10,000 carries one seed, not 10,000 IDs.
func DeriveID(seed string, n uint64) string {
	buf := make([]byte, 0, len(seed)+8)
	buf = append(buf, seed...)
	buf = binary.BigEndian.AppendUint64(buf, n)
	sum := sha256.Sum256(buf)
	return FormatUUID([16]byte(sum[:16]), 8)
}

// FormatUUID prints 16 bytes as a UUID of the given version (0–15), setting its
// version and variant bits.
func FormatUUID(b [16]byte, version byte) string {
	b[6] = b[6]&0x0f | version<<4
	b[8] = b[8]&0x3f | 0x80
	var out [36]byte
	hex.Encode(out[0:8], b[0:4])
	out[8] = '-'
	hex.Encode(out[9:13], b[4:6])
	out[13] = '-'
	hex.Encode(out[14:18], b[6:8])
	out[18] = '-'
	hex.Encode(out[19:23], b[8:10])
	out[23] = '-'
	hex.Encode(out[24:36], b[10:16])
	return string(out[:])
}

// MintedID makes a UUID (version 8, "custom") from ten random bytes and a time in Unix
// milliseconds, which is its last group. The random bytes come first, because people are
// shown the first eight characters (ShortID), and those of IDs that begin with their time
// are the same for a minute. The caller brings time and randomness, so that this package
// stays free of both.
func MintedID(unixMilli int64, random [10]byte) string {
	var b [16]byte
	copy(b[:], random[:])
	var at [8]byte
	binary.BigEndian.PutUint64(at[:], uint64(unixMilli)) // positive since 1970
	copy(b[10:], at[2:])                                 // 48 bits last until year 10889
	return FormatUUID(b, 8)
}

// ShortID is the first eight characters of an ID, as the CLI shows it.
func ShortID(id string) string {
	if len(id) > 8 {
		return id[:8]
	}
	return id
}

// NamespacedID names a thing that is unique within its namespace.
type NamespacedID struct {
	ID        string
	Namespace string
}

// String returns namespace/id.
func (n NamespacedID) String() string { return fmt.Sprintf("%s/%s", n.Namespace, n.ID) }

// JobText names a job for people who look at one of a namespace: job "train", or job "train" in namespace "vision" if it is of another.
func (n NamespacedID) JobText(from string) string {
	if n.Namespace == from {
		return fmt.Sprintf("job %q", n.ID)
	}
	return fmt.Sprintf("job %q in namespace %q", n.ID, n.Namespace)
}

// AllocName is the name of instance index of a job's group, as Nomad writes it.
func AllocName(job, group string, index int) string {
	return fmt.Sprintf("%s.%s[%d]", job, group, index)
}

// AllocIndex reads the instance's index back from an allocation's name; -1 when
// the name has none.
func AllocIndex(name string) int {
	if len(name) < 3 || name[len(name)-1] != ']' {
		return -1
	}
	n, scale := 0, 1
	for i := len(name) - 2; i >= 0; i-- {
		c := name[i]
		if c == '[' {
			if scale == 1 {
				return -1
			}
			return n
		}
		if c < '0' || c > '9' || scale > 1_000_000_000 {
			return -1
		}
		n += int(c-'0') * scale
		scale *= 10
	}
	return -1
}
