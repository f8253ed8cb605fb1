package structs

import (
	"regexp"
	"sync"
)

// pattern is a regular expression that is compiled when it is first needed: every command of the command line starts
// with this package, and few need one.
type pattern func() *regexp.Regexp

func compiled(text string) pattern {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// maxWord bounds names that are made of few characters, in bytes.
const maxWord = 128

// isWord reports whether s has 1 to maxWord letters, digits and dashes, and underscores where these are allowed. It stands
// for a pattern, which would take long to be compiled.
func isWord(s string, underscores bool) bool {
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' && underscores {
			continue
		}
		return false
	}
	return s != "" && len(s) <= maxWord
}

// MatchString reports whether s matches.
func (p pattern) MatchString(s string) bool { return p().MatchString(s) }
