// Package hcltext words what the HCL library reports, for all files of ours that are HCL. It must never parse anything itself.
package hcltext

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// Of returns what a diagnostic says, in one line, without its place.
func Of(d *hcl.Diagnostic) string {
	// The library has three texts about a block that begins and goes on in its first line. None of them shows what to write, and all
	// speak of "single-argument" blocks, a word that nobody who writes `cells { level = "node", count = 2 }` knows.
	if strings.HasPrefix(d.Summary, "Invalid single-argument block definition") {
		return "a block in one line takes one argument only: write each argument on a line of its own, without commas, and the closing brace on the next line"
	}
	if d.Summary == "Argument definition required" {
		// The library's text is about a block that begins in the line of the block around it, and speaks first of an argument that was never meant.
		return "a block in a block begins on a line of its own: go on in the next line after the opening brace of the outer one " +
			"(in the same line may stand one argument only, as in { name = value })"
	}
	text := d.Summary
	if d.Detail != "" {
		text = strings.TrimSuffix(d.Summary, ".") + ": " + d.Detail
	}
	return strings.Join(strings.Fields(text), " ")
}
