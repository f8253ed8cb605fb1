package structs

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

// isWord is what these patterns say.
func TestIsWord(t *testing.T) {
	dashes, underscores := regexp.MustCompile(`^[a-zA-Z0-9-]{1,128}$`), regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.OneOf(
			rapid.StringMatching(`[a-zA-Z0-9_-]{0,3}(.|\n)?`), rapid.StringMatching(`[a-z-]{126,130}`), rapid.StringMatching(`[@-Z\[-{/-:]{1,2}`), rapid.String(),
		).Draw(rt, "s")
		if isWord(s, false) != dashes.MatchString(s) || isWord(s, true) != underscores.MatchString(s) {
			rt.Errorf("%q: %v and %v", s, isWord(s, false), isWord(s, true))
		}
	})
}
