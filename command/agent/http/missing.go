package httpapi

import (
	"slices"
	"strings"

	"github.com/nomadish/nomadish/internal/wire"
)

// MissingRoute is a route of Nomad's that is answered with 501, with some of its methods or all.
type MissingRoute struct {
	Path    string   // * stands for a name
	Methods []string // sorted; nil: all of them
}

// String returns the methods, if not all are meant, and the path.
func (m MissingRoute) String() string {
	return strings.TrimSpace(strings.Join(m.Methods, "/") + " " + m.Path)
}

// MissingRoutes returns the routes that are answered with 501, in the order of the table of routes. It is the table that the
// server answers by.
func MissingRoutes() []MissingRoute {
	var out []MissingRoute
	for _, r := range (&Server{}).table() {
		if r.later {
			out = append(out, MissingRoute{Path: r.path})
			continue
		}
		var methods []string
		for method, do := range r.actions { // sorted below
			if do.standsFor == wire.AgentMissing {
				methods = append(methods, method)
			}
		}
		if methods != nil {
			slices.Sort(methods)
			out = append(out, MissingRoute{r.path, methods})
		}
	}
	return out
}
