package printable

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestEscape(t *testing.T) {
	f := func(in, line, text string) {
		t.Helper()
		if got := EscapeLine(in); got != line {
			t.Errorf("EscapeLine(%q) = %q, want %q", in, got, line)
		}
		if got := EscapeText(in); got != text {
			t.Errorf("EscapeText(%q) = %q, want %q", in, got, text)
		}
	}
	same := func(in string) { t.Helper(); f(in, in, in) }
	same("")
	same("web.front[0] ~!")
	same("größe ├─ 日本 😀 é \ufffd")
	same(`C:\x1b \n`) // a backslash is a character like others
	f("a\nb\tc", `a\nb\tc`, "a\nb\tc")
	both := func(in, want string) { t.Helper(); f(in, want, want) }
	both("\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`)
	both("\x00\a\b\v\f\r\x7f", `\x00\a\b\v\f\r\x7f`)
	both("a\u0085\u009b2J", `a\u0085\u009b2J`)
	both("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", `\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069`)
	both("\u00a0\u00ad\u200b\u200d\u2028\u2029\u2060\ufeff\u3000", `\u00a0\u00ad\u200b\u200d\u2028\u2029\u2060\ufeff\u3000`)
	both("\u034f\u115f\u3164\uffa0\ufe0f\U000e0100\U000e0041\ue000\uffff", `\u034f\u115f\u3164\uffa0\ufe0f\U000e0100\U000e0041\ue000\uffff`)
	both("a\xffb\xe2\x80", `a\xffb\xe2\x80`) // no UTF-8
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"web", "a\x1b[31m\n\u202e\xff", "\u3164\U000e0041\\"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		line, text := EscapeLine(s), EscapeText(s)
		for _, out := range []string{line, strings.NewReplacer("\n", "", "\t", "").Replace(text)} {
			if !utf8.ValidString(out) {
				t.Fatalf("%q: invalid: %q", s, out)
			}
			for _, r := range out {
				if !unicode.IsPrint(r) {
					t.Fatalf("%q: %U in %q", s, r, out)
				}
			}
		}
		if EscapeLine(line) != line || EscapeText(text) != text || EscapeLine(text) != line {
			t.Fatalf("%q: escaped twice it differs: %q, %q", s, EscapeLine(line), EscapeText(text))
		}
		var was, is any
		if json.Unmarshal([]byte(s), &was) != nil {
			raw, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			s = string(raw)
			_ = json.Unmarshal(raw, &was)
		}
		out := EscapeJSON([]byte(s))
		if err := json.Unmarshal(out, &is); err != nil {
			t.Fatalf("%q: %q: %v", s, out, err)
		}
		before, _ := json.Marshal(was)
		after, _ := json.Marshal(is)
		if string(before) != string(after) {
			t.Fatalf("%q: %q says %q, not %q", s, out, after, before)
		}
	})
}

func BenchmarkEscapeLine(b *testing.B) {
	for b.Loop() {
		EscapeLine("training-run-0123456789.worker[17]")
	}
}
