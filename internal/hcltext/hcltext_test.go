package hcltext

import (
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

func TestOf(t *testing.T) {
	for src, want := range map[string]string{
		"cells { level = \"node\", count = 2 }\n":  "write each argument on a line of its own, without commas",
		"cells { level = \"node\" count = 2 }\n":   "write each argument on a line of its own, without commas",
		"cells { level = \"node\"\n  count = 2\n}": "write each argument on a line of its own, without commas",
		"workflow \"w\" { stage \"s\" {\n  }\n}\n": "a block in a block begins on a line of its own",
		"a = \n": "Invalid expression: Expected the start of an expression",
	} {
		_, diags := hclsyntax.ParseConfig([]byte(src), "x.hcl", hcl.InitialPos)
		if !diags.HasErrors() {
			t.Fatalf("%q: no error", src)
		}
		if text := Of(diags[0]); !strings.Contains(text, want) || strings.Contains(text, "\n") {
			t.Errorf("%q: %q, want %q", src, text, want)
		}
	}
}
