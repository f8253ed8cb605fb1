package hclfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// nested are files that are as deep as they look.
var nested = []string{
	"a = [[[[1]]]]\n",
	"a {\n  b {\n    c {\n      d {}\n    }\n  }\n}\n",
	"a = \"${b(\"${c(\"${d}\")}\")}\"\n",
	"a = <<E\nx ${ [[ \"]]\" ]] } y\nE\nb = [[]]\n",
	"a = <<-E\n  ${ <<F\n[[[[\nF\n} $${ %%{ [[[[ \\\"\n  E\nb = \"$${[[[[\" # [[[[\n",
	"a = \"\\\"[[[[\\\\\" // [[[[\n/* [[[[ \" */ b = 1 /* [[[[",
	"a = !!!!true\nb = - - - -1\nc-d = a-b != !!false",
	"a = x ? y : (z ? 1 : 2)\n",
	"a = \"%{ if true ~}[[[[%{ endif }\"\nb = \"$\"\nc = \"%\"\nd = \"$[[[[%[[[[\"\n",
	"a = {b={c={d={}}}}\n}}}}}\n{{{{{",
	"\xef\xbb\xbfa = [[[\n",
	"a = <<E\n[[[[\n E \n[[[[\nE x\nE\n[[[",
	"a = <<E\r\n[[[[\r\nE\r\n[[[[",
	"é = \"é\u0301\" + [[[[",
	"a = \"x\n[[[[\"\n",
}

func TestTooDeep(t *testing.T) {
	for _, src := range nested {
		agree(t, []byte(src))
	}
	deep := []byte(strings.Repeat("[", 5_000_000))
	if allocs := testing.AllocsPerRun(3, func() {
		if at := tooDeep(deep, 200); at != 200 {
			t.Errorf("it is too deep at %d, want 200", at)
		}
	}); allocs > 10 {
		t.Errorf("%v allocations", allocs)
	}
	for _, pattern := range []string{"../testdata/bad/*.hcl", "../testdata/good/*.hcl"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(err, pattern)
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			agree(t, src)
		}
	}
}

// agree compares the scanner to the lexer at every depth: a file that lexes has the same depth for both, and places are the same.
func agree(t *testing.T, src []byte) {
	t.Helper()
	tokens, _ := hclsyntax.LexConfig(src, "x", hcl.InitialPos)
	lexes := utf8.Valid(src)
	for _, tok := range tokens {
		if tok.Type == hclsyntax.TokenInvalid || tok.Type == hclsyntax.TokenBadUTF8 || tok.Type == hclsyntax.TokenQuotedNewline {
			lexes = false
		}
	}
	for most := range 8 {
		want := checkTokens("x", src, most)
		at := tooDeep(src, most)
		switch {
		case !lexes:
		case at < 0 && want != nil:
			t.Fatalf("%q: at most %d: not too deep, want %v", src, most, want)
		case at >= 0 && want == nil:
			t.Fatalf("%q: at most %d: too deep at %d (%q), want not", src, most, at, src[at:])
		case at >= 0:
			if rng := rangeOf("x", src, at); rng.Start.Line != want[0].Line || rng.Start.Column != want[0].Column {
				t.Fatalf("%q: at most %d: too deep at %v, want %d:%d", src, most, rng, want[0].Line, want[0].Column)
			}
		}
	}
}

// Whatever the bytes, the scanner ends, and agrees with the lexer about files that lex.
func FuzzTooDeep(f *testing.F) {
	for _, src := range nested {
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, src []byte) { agree(t, src) })
}
