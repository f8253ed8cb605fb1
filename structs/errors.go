package structs

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Code classifies an error so that it survives the wire: the server's sentinel
// becomes an HTTP status and an exit code without anybody reading its text.
type Code string

// The codes. HTTPStatus returns the HTTP status of each.
const (
	CodeInternal     Code = "internal"      // a fault of ours
	CodeBadRequest   Code = "bad_request"   // the caller must change what it sent
	CodeNotFound     Code = "not_found"     // the thing named does not exist
	CodeConflict     Code = "conflict"      // check index or state does not match
	CodeForbidden    Code = "forbidden"     // the caller may not do that
	CodeNoLeader     Code = "no_leader"     // the cluster has no leader now; try again
	CodeNoNode       Code = "no_node"       // the node that holds the thing cannot be reached
	CodeTooLarge     Code = "too_large"     // over a configured limit
	CodeLimited      Code = "limited"       // too many at once; try again
	CodeUnsupported  Code = "unsupported"   // Nomad has it, we do not (yet)
	CodeNotLeader    Code = "not_leader"    // the server that was called knows no leader, and did nothing: call another
	CodeNoRegion     Code = "no_region"     // the requested region is not known, or none of its servers can be reached
	CodeNoServer     Code = "no_server"     // the server that is named is not known
	CodeStaleRequest Code = "stale_request" // a token, index or snapshot was overtaken
)

// HTTPStatus is the HTTP status code that answers an error of this code.
func (c Code) HTTPStatus() int {
	switch c {
	case CodeBadRequest:
		return 400
	case CodeForbidden:
		return 403
	case CodeNotFound:
		return 404
	case CodeConflict, CodeStaleRequest:
		return 409
	case CodeTooLarge:
		return 413
	case CodeLimited:
		return 429
	case CodeUnsupported:
		return 501
	case CodeNoLeader, CodeNotLeader, CodeNoRegion, CodeNoServer:
		return 500 // as Nomad answers; its clients retry on it
	case CodeNoNode:
		return 502
	case CodeInternal:
		return 500
	}
	return 500
}

// Error is an error with a code and, where we know it, what to do next.
type Error struct {
	Code Code   // what kind
	Msg  string // what and where
	Hint string // what to do next; may be empty
	Err  error  // the cause, not sent over the wire; may be nil
}

// Error returns the message, the cause and the hint in one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Msg)
	if e.Err != nil {
		if e.Msg != "" {
			b.WriteString(": ")
		}
		b.WriteString(e.Err.Error())
	}
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrNotFound) true for every error of that code.
func (e *Error) Is(target error) bool {
	var t *Error
	return errors.As(target, &t) && t.Msg == "" && t.Err == nil && t.Code == e.Code
}

// Sentinels to test with errors.Is; each matches every Error of its code.
var (
	ErrBadRequest  = &Error{Code: CodeBadRequest}
	ErrNotFound    = &Error{Code: CodeNotFound}
	ErrConflict    = &Error{Code: CodeConflict}
	ErrForbidden   = &Error{Code: CodeForbidden}
	ErrNoLeader    = &Error{Code: CodeNoLeader}
	ErrNotLeader   = &Error{Code: CodeNotLeader}
	ErrNoRegion    = &Error{Code: CodeNoRegion}
	ErrNoNode      = &Error{Code: CodeNoNode}
	ErrNoServer    = &Error{Code: CodeNoServer}
	ErrTooLarge    = &Error{Code: CodeTooLarge}
	ErrLimited     = &Error{Code: CodeLimited}
	ErrUnsupported = &Error{Code: CodeUnsupported}
	ErrStale       = &Error{Code: CodeStaleRequest}
)

// ErrNothingDone is within the error of a write whose log entry was surely not taken: this server does not lead any more.
var ErrNothingDone = errors.New("nothing was done")

// Errorf makes an Error of a code. A %w in the format is kept as its cause.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...)}
}

// WithHint returns a copy of e that states what to do next.
func (e *Error) WithHint(format string, args ...any) *Error {
	with := *e
	with.Hint = fmt.Sprintf(format, args...)
	return &with
}

// MaxErrorBytes bounds the text of an error at every door: in HTTP answers and in RPC. It may quote what a caller sent.
const MaxErrorBytes = 1024

// Clip returns text with at most the given number of bytes. Where it was cut it ends with "…".
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const mark = "…"
	cut := max(0, most-len(mark))
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + mark
}

// ClipLines returns lines, each after sep, as far as they fit into the given number of bytes, and then how many more there are.
// The first line is always there, cut if it must be.
func ClipLines(lines []string, sep string, most int) string {
	const room = len("… and 1000000 more errors")
	var b strings.Builder
	for i, line := range lines {
		rest := 0
		if i < len(lines)-1 {
			rest = len(sep) + room
		}
		switch {
		case i == 0:
			line = Clip(line, most-len(sep)-rest)
		case b.Len()+len(sep)+len(line)+rest > most:
			fmt.Fprintf(&b, "%s… and %d more errors", sep, len(lines)-i)
			return b.String()
		}
		b.WriteString(sep)
		b.WriteString(line)
	}
	return b.String()
}

// CodeOf is the code of the first Error in err's chain; CodeInternal without one.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}
