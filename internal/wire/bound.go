package wire

import (
	"bytes"
	"io"

	"github.com/nomadish/nomadish/internal/codec"
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
		args, err = codec.ReadRaw(r, m.maxFrame)
		return args, nil, err
	}
	n, err := codec.ReadSize(r, m.maxFrame)
	if err != nil {
		return nil, nil, err
	}
	if n > limit.bytes {
		if _, err := io.CopyN(io.Discard, r, int64(n)); err != nil {
			return nil, nil, err
		}
		return nil, structs.Errorf(structs.CodeBadRequest, "%s: the argument has %d bytes, at most %d are allowed", method, n, limit.bytes).WithHint("%s", limit.hint), nil
	}
	if args, err = codec.ReadBody(r, n); err != nil {
		return nil, nil, err
	}
	if found, most := codec.Containers(args), max(limit.bytes/bytesPerContainer, 16); found > most {
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
