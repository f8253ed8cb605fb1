package hclfile

import (
	"bytes"
	"strings"
	"testing"
)

func TestFormat(t *testing.T) {
	f := func(src, want string) {
		t.Helper()
		got, problems := Format("a.hcl", []byte(src), Limits{})
		if len(problems) > 0 || string(got) != want {
			t.Errorf("%q: %q, %v, want %q", src, got, problems, want)
		}
	}
	f("", "")
	f("a=1", "a = 1")
	f("job \"x\"{\na=1\n    long =  [1,2]\n}\n", "job \"x\" {\n  a    = 1\n  long = [1, 2]\n}\n")
	f("a = 1 # why\nbbb = 2 // too\n", "a   = 1 # why\nbbb = 2 // too\n")
	f("a=1\r\nb=2\r\n", "a = 1\r\nb = 2\r\n")
	f("\xef\xbb\xbfa=1\n", "\xef\xbb\xbfa = 1\n")
	f("x = <<EOT\n   kept   ${ a }\n\tkept\nEOT\n", "x = <<EOT\n   kept   ${a}\n\tkept\nEOT\n")
	f("a = {\n  b = 1\n}\n", "a = {\n  b = 1\n}\n")
	refused := func(src, want string) {
		t.Helper()
		got, problems := Format("a.hcl", []byte(src), Limits{FileBytes: 1 << 20})
		if got != nil || len(problems) == 0 || !strings.Contains(problems.Error(), want) {
			t.Errorf("%.40q: %.40q, %v, want %q", src, got, problems, want)
		}
	}
	refused("a = {", "a.hcl:1")
	refused("{\"job\": {}}", "a.hcl:1")
	refused("a = \"\xff\"\n", "a.hcl:1")
	refused("a = "+strings.Repeat("[", 100_000), "nested deeper")
	refused(strings.Repeat("#", 2<<20), "more than the limit")
}

// What is formatted has the same tokens, and its syntax is right.
func FuzzFormat(f *testing.F) {
	f.Add([]byte("job \"x\"{\na=1\n  b  = [ 1,2 ]\n}\n"))
	f.Add([]byte("x = <<-EOT\n  a ${ b }\n  EOT\n"))
	f.Add([]byte("a = \"%{ if x }y%{ endif }\" /* c */\r\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		if len(src) > 1<<12 {
			return
		}
		limits := Limits{FileBytes: 1 << 16, Nesting: 20}
		out, problems := Format("a.hcl", bytes.Clone(src), limits)
		if len(problems) > 0 {
			if out != nil {
				t.Fatalf("%q was refused and formatted: %v", src, problems)
			}
			return
		}
		if !sameTokens("a.hcl", bytes.TrimPrefix(src, byteOrderMark), bytes.TrimPrefix(out, byteOrderMark)) {
			t.Fatalf("%q became %q", src, out)
		}
		if _, problems := Parse("a.hcl", out, limits); len(problems) > 0 {
			t.Fatalf("%q became %q, which is refused: %v", src, out, problems)
		}
	})
}
