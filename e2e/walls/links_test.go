package walls

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	inlineLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headLine   = regexp.MustCompile(`(?m)^#+ (.+)$`)
	codeBlock  = regexp.MustCompile("(?ms)^\\s*```.*?^\\s*```")
	codeSpan   = regexp.MustCompile("`[^`\n]*`")
	notAnchor  = regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
)

// TestLinks checks that every relative link of every page leads to a file that is there, and to a heading that it has.
func TestLinks(t *testing.T) {
	root := load(t).Root
	pages, links := 0, 0
	eachText(t, ".md", func(name string, text []byte) {
		pages++
		for _, m := range inlineLink.FindAllStringSubmatch(codeSpan.ReplaceAllString(codeBlock.ReplaceAllString(string(text), ""), ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			links++
			if why := broken(filepath.Join(root, name), m[1]); why != "" {
				t.Errorf("%s: link to %s: %s", name, m[1], why)
			}
		}
	})
	if pages < 20 || links < 100 {
		t.Errorf("%d pages with %d links: this test does not find them", pages, links)
	}
}

// broken states what is wrong with a page's link; empty: nothing.
func broken(page, link string) string {
	file, anchor, _ := strings.Cut(link, "#")
	target := page
	if file != "" {
		target = filepath.Join(filepath.Dir(page), file)
	}
	info, err := os.Stat(target)
	if err != nil {
		return "there is no such file"
	}
	if anchor == "" || info.IsDir() {
		return ""
	}
	text, err := os.ReadFile(target)
	if err != nil {
		return err.Error()
	}
	for _, m := range headLine.FindAllStringSubmatch(codeBlock.ReplaceAllString(string(text), ""), -1) {
		if anchorOf(m[1]) == anchor {
			return ""
		}
	}
	return "there is no such heading"
}

// anchorOf returns what a heading is called in links: lower case, dashes for spaces, without punctuation.
func anchorOf(heading string) string {
	return strings.ReplaceAll(notAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}
