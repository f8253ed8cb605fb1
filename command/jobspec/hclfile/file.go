package hclfile

import (
	"cmp"
	"slices"

	"github.com/dustin/go-humanize"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Limits bound what reading a file may cost. Zero values mean the defaults.
type Limits struct {
	FileBytes  int // size of one file; 10 MB
	ValueBytes int // size of one local or variable, and of what an expression refers to; 10 MB
	Nesting    int // depth of blocks, brackets and templates; 200
	Blocks     int // blocks that dynamic blocks may make; 100,000
}

// DefaultFileBytes is the size limit of a file if none is stated.
const DefaultFileBytes = 10_000_000

func (l Limits) orDefaults() Limits {
	l.FileBytes = cmp.Or(l.FileBytes, DefaultFileBytes)
	l.ValueBytes = cmp.Or(l.ValueBytes, 10_000_000)
	l.Nesting = cmp.Or(l.Nesting, 200)
	l.Blocks = cmp.Or(l.Blocks, 100_000)
	return l
}

// File is a file whose syntax is right.
type File struct {
	Name string
	Body *hclsyntax.Body

	src    []byte
	limits Limits
}

// Parse reads a file's syntax.
func Parse(name string, src []byte, limits Limits) (*File, Problems) {
	limits = limits.orDefaults()
	if len(src) > limits.FileBytes {
		return nil, Problems{{File: name, Text: "the file has " + humanize.Bytes(uint64(len(src))) +
			", more than the limit of " + humanize.Bytes(uint64(limits.FileBytes))}}
	}
	if p := checkNesting(name, src, limits.Nesting); p != nil {
		return nil, p
	}
	parsed, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, fromDiags(name, diags)
	}
	body, ok := parsed.Body.(*hclsyntax.Body)
	if !ok {
		return nil, Problems{{File: name, Text: "is not in HCL's native syntax"}}
	}
	return &File{Name: name, Body: body, src: src, limits: limits}, nil
}

// checkNesting refuses what would make the recursive parser recurse too deeply. The scan costs no memory and ends at the
// first place that is too deep; the tokens, which take a hundred times the memory of the file, have the last word.
func checkNesting(name string, src []byte, most int) Problems {
	if at := tooDeep(src, most); at >= 0 {
		return Problems{At(rangeOf(name, src, at), "nested deeper than %d levels", most)}
	}
	return checkTokens(name, src, most)
}

func checkTokens(name string, src []byte, most int) Problems {
	tokens, _ := hclsyntax.LexConfig(src, name, hcl.InitialPos)
	depth, run, questions := 0, 0, 0
	for _, t := range tokens {
		// The others hold nothing of interest here.
		//exhaustive:ignore
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOParen, hclsyntax.TokenOBrack, hclsyntax.TokenTemplateInterp,
			hclsyntax.TokenTemplateControl, hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc:
			depth++
		case hclsyntax.TokenCBrace, hclsyntax.TokenCParen, hclsyntax.TokenCBrack, hclsyntax.TokenTemplateSeqEnd,
			hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc:
			depth--
		case hclsyntax.TokenQuestion:
			questions++
		case hclsyntax.TokenNewline:
			if depth == 0 {
				questions = 0
			}
		}
		if t.Type == hclsyntax.TokenBang || t.Type == hclsyntax.TokenMinus {
			run++
		} else {
			run = 0
		}
		if depth > most || run > most || questions > 50*most {
			return Problems{At(t.Range, "nested deeper than %d levels", most)}
		}
	}
	return nil
}

// text is the source of a place in the file.
func (f *File) text(rng hcl.Range) string {
	if rng.Start.Byte < 0 || rng.End.Byte > len(f.src) || rng.Start.Byte > rng.End.Byte {
		return ""
	}
	return string(f.src[rng.Start.Byte:rng.End.Byte])
}

// sortedAttrs returns a body's attributes in the order of the file.
func sortedAttrs(body *hclsyntax.Body) []*hclsyntax.Attribute {
	out := make([]*hclsyntax.Attribute, 0, len(body.Attributes))
	for _, a := range body.Attributes {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b *hclsyntax.Attribute) int {
		return cmp.Compare(a.NameRange.Start.Byte, b.NameRange.Start.Byte)
	})
	return out
}

// Attributes returns the attributes at the top of the file, in its order.
func (f *File) Attributes() []*hclsyntax.Attribute { return sortedAttrs(f.Body) }
