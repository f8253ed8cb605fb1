package hclfile

import (
	"bytes"

	"github.com/hashicorp/hcl/v2"
)

// tooDeep returns the offset of the first token that is nested deeper than most levels, or -1. It goes through the bytes once,
// and keeps no more than one level of the text that it is in.
//
// It counts what checkTokens counts, and knows as much of the syntax as that takes: comments, quoted text, heredocs, and the
// templates in both. Of a file whose syntax is wrong it may take another view than the lexer, but never a deeper one.
func tooDeep(src []byte, most int) int {
	s := scanner{src: bytes.TrimPrefix(src, []byte("\xef\xbb\xbf")), most: most}
	skipped := len(src) - len(s.src)
	for s.at < len(s.src) {
		start := s.at
		if len(s.inside) > 0 && s.inside[len(s.inside)-1].text() {
			s.literal()
		} else {
			s.code()
		}
		if s.depth > most || s.run > most || s.questions > 50*most {
			return start + skipped
		}
	}
	return -1
}

// level is something open that decides how the bytes in it are read.
type level struct {
	kind   byte   // '"': quoted text; '<': a heredoc; '{': a template's code
	marker []byte // that ends a heredoc
	braces int    // open in a template's code
	begun  bool   // the line of a heredoc holds something already that is no text
}

func (l *level) text() bool { return l.kind == '"' || l.kind == '<' }

type scanner struct {
	src    []byte
	at     int
	most   int
	inside []level

	depth, run, questions int
	noCommentEnds         bool // from here on
}

func (s *scanner) has(prefix string) bool {
	return len(s.src)-s.at >= len(prefix) && string(s.src[s.at:s.at+len(prefix)]) == prefix
}

func (s *scanner) push(l level) {
	s.inside = append(s.inside, l)
	s.depth++
}

func (s *scanner) pop() {
	s.inside = s.inside[:len(s.inside)-1]
	s.depth--
}

// code passes one token of code.
func (s *scanner) code() {
	c := s.src[s.at]
	if c == ' ' || c == '\t' {
		s.at++
		return
	}
	if (c == '!' || c == '-') && !s.has("!=") {
		s.run++
		s.at++
		return
	}
	s.run = 0
	switch {
	case c == '\n':
		if s.depth == 0 {
			s.questions = 0
		}
		s.at++
	case c == '#', s.has("//"):
		s.line()
	case s.has("/*") && s.comment():
	case c == '"':
		s.at++
		s.push(level{kind: '"'})
	case s.has("<<") && s.heredoc():
	case wordByte(c):
		s.at += wordLen(s.src[s.at:])
	case digit(c):
		s.number()
	default:
		s.symbol(c)
		s.at++
	}
}

func wordByte(c byte) bool {
	return c == '_' || c >= 0x80 || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// wordLen returns the length of the name that the text begins with.
func wordLen(text []byte) int {
	n := 0
	for n < len(text) && (wordByte(text[n]) || digit(text[n]) || text[n] == '-') {
		n++
	}
	return n
}

// number passes a number: the minus of its exponent is none of code.
func (s *scanner) number() {
	for s.at < len(s.src) && (digit(s.src[s.at]) || s.src[s.at] == '.') {
		s.at++
	}
	rest := s.src[s.at:]
	if len(rest) > 1 && (rest[0] == 'e' || rest[0] == 'E') {
		n := 1
		if rest[1] == '+' || rest[1] == '-' {
			n++
		}
		if n < len(rest) && digit(rest[n]) {
			s.at += n + 1
			s.number()
		}
	}
}

func (s *scanner) symbol(c byte) {
	var top *level
	if n := len(s.inside); n > 0 {
		top = &s.inside[n-1]
	}
	switch c {
	case '?':
		s.questions++
	case '(', '[':
		s.depth++
	case ')', ']':
		s.depth--
	case '{':
		s.depth++
		if top != nil {
			top.braces++
		}
	case '}':
		switch {
		case top == nil:
			s.depth--
		case top.braces == 0:
			s.pop()
		default:
			top.braces--
			s.depth--
		}
	}
}

// line passes the rest of the line with its end.
func (s *scanner) line() {
	n := bytes.IndexByte(s.src[s.at:], '\n')
	if n < 0 {
		n = len(s.src) - s.at - 1
	}
	s.at += n + 1
}

// comment passes a comment of /* and */. One that does not end is none.
func (s *scanner) comment() bool {
	if s.noCommentEnds {
		return false
	}
	n := bytes.Index(s.src[s.at+2:], []byte("*/"))
	if n < 0 {
		s.noCommentEnds = true
		return false
	}
	s.at += 2 + n + 2
	return true
}

// heredoc passes the beginning of a heredoc: <<NAME or <<-NAME and the end of the line.
func (s *scanner) heredoc() bool {
	rest := s.src[s.at+2:]
	if len(rest) > 0 && rest[0] == '-' {
		rest = rest[1:]
	}
	if len(rest) == 0 || !wordByte(rest[0]) {
		return false
	}
	n := wordLen(rest)
	end := n
	if end < len(rest) && rest[end] == '\r' {
		end++
	}
	if end >= len(rest) || rest[end] != '\n' {
		return false
	}
	s.at = len(s.src) - len(rest) + end + 1
	s.push(level{kind: '<', marker: rest[:n]})
	return true
}

// literal passes a piece of quoted text or of a heredoc.
func (s *scanner) literal() {
	top := &s.inside[len(s.inside)-1]
	s.run = 0
	c := s.src[s.at]
	if top.kind == '<' && !top.begun {
		end := bytes.IndexByte(s.src[s.at:], '\n')
		if end >= 0 && bytes.Equal(bytes.TrimSpace(s.src[s.at:s.at+end]), top.marker) {
			s.at += end // the newline is code again
			s.pop()
			return
		}
	}
	top.begun = true
	switch {
	case s.has("${"), s.has("%{"):
		s.at += 2
		s.push(level{kind: '{'})
	case s.has("$${"), s.has("%%{"): // stands for itself
		s.at += 3
	case c == '"' && top.kind == '"':
		s.at++
		s.pop()
	case c == '\\' && top.kind == '"':
		s.at++
		if s.at < len(s.src) && s.src[s.at] != '\n' && s.src[s.at] != '\r' {
			s.at++
		}
	case c == '\n':
		top.begun = false
		s.at++
	default:
		s.at++
	}
}

// rangeOf returns the place of one byte, in columns as the HCL library counts them.
func rangeOf(name string, src []byte, at int) hcl.Range {
	begin := bytes.LastIndexByte(src[:at], '\n') + 1
	place := hcl.Pos{Line: bytes.Count(src[:begin], []byte("\n")) + 1, Column: 1, Byte: at}
	before := bytes.TrimPrefix(src[begin:at], []byte("\xef\xbb\xbf"))
	line := hcl.NewRangeScanner(before, name, func(data []byte, _ bool) (int, []byte, error) { return len(data), data, nil })
	if len(before) > 0 && line.Scan() {
		place.Column = line.Range().End.Column
	}
	return hcl.Range{Filename: name, Start: place, End: place}
}
