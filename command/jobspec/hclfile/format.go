package hclfile

import (
	"bytes"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// Format returns a file in HCL's canonical style: its indentation, the spaces between tokens and the alignment of what follows
// each other. It changes nothing but white space. A file whose syntax is wrong is refused.
func Format(name string, src []byte, limits Limits) ([]byte, Problems) {
	if _, problems := Parse(name, src, limits); len(problems) > 0 {
		return nil, problems
	}
	text, marked := bytes.CutPrefix(src, byteOrderMark)
	out := hclwrite.Format(text)
	if !sameTokens(name, text, out) {
		return nil, Problems{{File: name, Text: "cannot be formatted without changing more than white space; the file is left as it is"}}
	}
	if marked {
		out = append(bytes.Clone(byteOrderMark), out...)
	}
	return out, nil
}

// sameTokens reports whether two texts differ in white space alone.
func sameTokens(name string, a, b []byte) bool {
	before, _ := hclsyntax.LexConfig(a, name, hcl.InitialPos)
	after, _ := hclsyntax.LexConfig(b, name, hcl.InitialPos)
	if len(before) != len(after) {
		return false
	}
	for i, t := range before {
		if t.Type != after[i].Type || !bytes.Equal(t.Bytes, after[i].Bytes) {
			return false
		}
	}
	return true
}
