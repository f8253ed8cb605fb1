package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/nomadish/nomadish/structs"
)

// bytesPerContainer is how many bytes of a method's bound there must be for each list, map and nil of an argument. In a list of empty
// maps each takes a byte, and is decoded to a struct of hundreds: a bound on bytes alone would not bound memory. What is sent in
// earnest has field names between them.
const bytesPerContainer = 16

// bound is what the argument of a method may be at most.
type bound struct {
	bytes int
	hint  string
}

// Bound limits the argument of a method to so many bytes, when it comes over a session. A larger one is neither stored nor decoded, and
// answered with CodeBadRequest and the hint. Methods without a bound of their own have the limit of all frames. Bounds are set before
// the Mux serves, never after.
func (m *Mux) Bound(method string, bytes int, hint string) {
	m.bounds[method] = bound{min(bytes, m.maxFrame), hint}
}

// readArgs reads the argument of a method. A refusal is the answer to the call; after an error nothing more can be read.
func (m *Mux) readArgs(r io.Reader, method []byte) (args []byte, refusal, err error) {
	limit, bounded := m.bounds[string(method)]
	if !bounded {
		args, err = readRaw(r, m.maxFrame)
		return args, nil, err
	}
	n, err := readSize(r, m.maxFrame)
	if err != nil {
		return nil, nil, err
	}
	if n > limit.bytes {
		if _, err := io.CopyN(io.Discard, r, int64(n)); err != nil {
			return nil, nil, err
		}
		return nil, structs.Errorf(structs.CodeBadRequest, "%s: the argument has %d bytes, at most %d are allowed", method, n, limit.bytes).WithHint("%s", limit.hint), nil
	}
	if args, err = readBody(r, n); err != nil {
		return nil, nil, err
	}
	if found, most := containers(args), max(limit.bytes/bytesPerContainer, 16); found > most {
		return nil, structs.Errorf(structs.CodeBadRequest, "%s: the argument of %d bytes has %d lists, maps and nils, at most %d are allowed", method, n, found, most), nil
	}
	return args, nil, nil
}

// methodIn returns the method that a header names, where it is written as callers of ours do; nil: it is not. Decoding would need more
// stack than reading does, and as many streams are read as there are questions that wait.
func methodIn(head []byte) []byte {
	const key = "\xa6Method"
	at := bytes.Index(head, []byte(key))
	if at < 0 || at+len(key) >= len(head) {
		return nil
	}
	rest := head[at+len(key):]
	n, from := int(rest[0]&0x1f), 1
	if rest[0] == 0xd9 && len(rest) > 1 {
		n, from = int(rest[1]), 2
	} else if rest[0]&0xe0 != 0xa0 {
		return nil
	}
	if from+n > len(rest) {
		return nil
	}
	return rest[from : from+n]
}

// readSize reads how long a frame is.
func readSize(r io.Reader, limit int) (int, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, err
	}
	n := int(binary.BigEndian.Uint32(head[:]))
	if n > limit {
		return 0, fmt.Errorf("read frame of %d bytes: %w, the limit is %d", n, ErrFrameTooLarge, limit)
	}
	return n, nil
}

// containers returns how many lists, maps and nils msgpack data has, whatever is wrong with it: that is for its decoder to find.
func containers(data []byte) int {
	found := 0
	for i := 0; i < len(data); {
		b := data[i]
		i++
		switch {
		case b < 0x80 || b >= 0xe0: // small numbers
		case b < 0xa0: // short maps and lists
			found++
		case b < 0xc0: // short strings
			i += int(b & 0x1f)
		case b == 0xc0: // nil
			found++
		case b >= 0xdc: // long lists and maps
			found++
			i += 2 << (b & 1)
		default:
			i += sizeAfter(b, data[i:])
		}
	}
	return found
}

// fixedSizes are the bytes that follow the first of those values whose length it says itself, from 0xc0 on.
var fixedSizes = [...]int{0xca - 0xc0: 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 3, 5, 9, 17}

// sizeAfter returns how many bytes follow the first of a value from 0xc0 to 0xdb.
func sizeAfter(b byte, rest []byte) int {
	width, extra := 0, 0
	switch b {
	case 0xc4, 0xc5, 0xc6: // bytes
		width = 1 << (b - 0xc4)
	case 0xc7, 0xc8, 0xc9: // extensions, with a type
		width, extra = 1<<(b-0xc7), 1
	case 0xd9, 0xda, 0xdb: // strings
		width = 1 << (b - 0xd9)
	default:
		return fixedSizes[b-0xc0]
	}
	if len(rest) < width {
		return width
	}
	n := 0
	for _, c := range rest[:width] {
		n = n<<8 | int(c)
	}
	return width + extra + n
}
