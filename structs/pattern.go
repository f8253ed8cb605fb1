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

// MatchString reports whether s matches.
func (p pattern) MatchString(s string) bool { return p().MatchString(s) }
