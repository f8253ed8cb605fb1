package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Nomad's agent reads the older HCL, in which an attribute of a block may have a
// quoted name, and configurations use that for names with dots:
//
//	meta {
//	  "connect.log_level" = "debug"
//	}
//
// The HCL library refuses it. unquoteNames puts a plain word of the same length in
// place of each such name, so that positions stay true, and returns the names by where
// they stand.
func unquoteNames(name string, src []byte) ([]byte, map[int]string) {
	tokens, diags := hclsyntax.LexConfig(src, name, hcl.InitialPos)
	if diags.HasErrors() {
		return src, nil // the parser describes it better
	}
	tokens = slices.DeleteFunc(tokens, func(t hclsyntax.Token) bool { return t.Type == hclsyntax.TokenComment })
	var names map[int]string
	out := src
	inBlock := []bool{true} // whether each open brace is a block's, not an object's
	for i, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOBrace:
			inBlock = append(inBlock, inBlock[len(inBlock)-1] && i > 0 && opensBlock(tokens[i-1].Type))
		case hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			inBlock = append(inBlock, false)
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenTemplateSeqEnd:
			if len(inBlock) > 1 {
				inBlock = inBlock[:len(inBlock)-1]
			}
		case hclsyntax.TokenOQuote:
			if !inBlock[len(inBlock)-1] || !isQuotedName(tokens, i) {
				continue
			}
			from, to := t.Range.Start.Byte, tokens[i+2].Range.End.Byte
			number := strconv.FormatInt(int64(len(names)), 36)
			if len(number) > to-from-1 {
				continue
			}
			if names == nil {
				names, out = map[int]string{}, slices.Clone(src)
			}
			names[from] = string(tokens[i+1].Bytes)
			copy(out[from:to], "q"+strings.Repeat("0", to-from-1-len(number))+number)
		default:
		}
	}
	return out, names
}

// opensBlock reports whether a brace after this token begins a block.
func opensBlock(before hclsyntax.TokenType) bool {
	return before == hclsyntax.TokenIdent || before == hclsyntax.TokenCQuote
}

// isQuotedName reports whether the quote at i begins a line's "name" = .
func isQuotedName(tokens hclsyntax.Tokens, i int) bool {
	if i+3 >= len(tokens) || tokens[i+1].Type != hclsyntax.TokenQuotedLit || tokens[i+2].Type != hclsyntax.TokenCQuote ||
		tokens[i+3].Type != hclsyntax.TokenEqual {
		return false
	}
	if i > 0 && tokens[i-1].Type != hclsyntax.TokenNewline && tokens[i-1].Type != hclsyntax.TokenOBrace {
		return false
	}
	return !strings.ContainsAny(string(tokens[i+1].Bytes), "\\\n")
}
