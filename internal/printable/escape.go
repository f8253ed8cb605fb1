package printable

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// EscapeText returns s with every character that a terminal would obey or hide written as an escape sequence of Go's
// (\x1b, \u202e), so that what is shown is what is there: control characters, direction and other format characters, separators
// of lines, private and unassigned characters, invisible ones, and bytes that are not UTF-8. Newlines and tabs stay.
//
// A backslash stays as it is, so that escaping twice is escaping once.
func EscapeText(s string) string { return escape(s, true) }

// EscapeLine is EscapeText of a text that must stay within its line: newlines and tabs are escaped too.
func EscapeLine(s string) string { return escape(s, false) }

// EscapeJSON returns a JSON document, or part of one, with what EscapeText would escape as \uXXXX: the value is the same.
// Outside of strings valid JSON has nothing of the kind.
func EscapeJSON(raw []byte) []byte {
	if plainText(raw) {
		return raw
	}
	out := make([]byte, 0, len(raw)+len(raw)/8)
	for len(raw) > 0 {
		r, size := utf8.DecodeRune(raw)
		switch {
		case r == utf8.RuneError && size == 1: // what readers of JSON make of it
			out = append(out, `\ufffd`...)
		case r == '\n' || r == '\t' || r == '\r' || Printable(r):
			out = append(out, raw[:size]...)
		case r > 0xFFFF:
			high, low := utf16Pair(r)
			out = append(appendHex(append(out, `\u`...), high), `\u`...)
			out = appendHex(out, low)
		default:
			out = appendHex(append(out, `\u`...), r)
		}
		raw = raw[size:]
	}
	return out
}

// utf16Pair returns the surrogates of a character beyond the first plane.
func utf16Pair(r rune) (high, low rune) {
	r -= 0x10000
	return 0xD800 + r>>10, 0xDC00 + r&0x3FF
}

func appendHex(b []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	for shift := 12; shift >= 0; shift -= 4 {
		b = append(b, digits[r>>shift&0xF])
	}
	return b
}

// Printable reports whether a character is shown as it stands: it is visible or the plain space, and no terminal acts on it.
func Printable(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= ' ' && r < 0x7F
	}
	// Letters that are drawn as nothing and variation selectors are printable to unicode.IsPrint.
	return unicode.IsPrint(r) && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// plainText reports whether a text is ASCII that a terminal prints, newlines and tabs included: nothing is to be escaped.
func plainText(s []byte) bool {
	for _, c := range s {
		if (c < ' ' && c != '\n' && c != '\t') || c >= 0x7F {
			return false
		}
	}
	return true
}

func escape(s string, text bool) string {
	at := escapeFrom(s, text)
	if at == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for at < len(s) {
		b.WriteString(s[:at])
		s = s[at:]
		if r, size := utf8.DecodeRuneInString(s); r == utf8.RuneError && size == 1 {
			b.WriteString(`\x` + strconv.FormatUint(uint64(s[0]), 16))
			s = s[1:]
		} else {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
			s = s[size:]
		}
		at = escapeFrom(s, text)
	}
	b.WriteString(s)
	return b.String()
}

// escapeFrom returns where the first character of s stands that must be escaped; len(s): there is none.
func escapeFrom(s string, text bool) int {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c < ' ' && (!text || c != '\n' && c != '\t') || c == 0x7F {
				return i
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || !Printable(r) {
			return i
		}
		i += size
	}
	return len(s)
}
