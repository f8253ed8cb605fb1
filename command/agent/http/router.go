package httpapi

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/nomadish/nomadish/structs"
)

// handlerFunc answers a request: with what is to be encoded as JSON, with
// nothing (an empty body), or with answered when it has written the answer itself.
type handlerFunc func(r *request) (any, error)

// action is what a route does for one method of HTTP. StandsFor is the row of the table of methods in package
// wire that states who may call it.
type action struct {
	run       handlerFunc
	standsFor string
	costly    bool // a page of another site must not even make the agent do it
}

// route is one path with its methods. A * in the path stands for one name, which
// may itself hold slashes (job IDs do); the longest path that fits wins.
type route struct {
	path    string
	actions map[string]action
	streams bool // never compressed
	// later marks a route that is answered with 501: one of Nomad's.
	later bool

	allow   string
	pattern *regexp.Regexp
	literal int // characters that are not *
}

// match is a route that fits a path, with the names in it.
type match struct {
	route *route
	ids   []string
	err   error // a name that cannot be one
}

// router finds routes. It does not change after newRouter. The standard mux is
// of no use here: it redirects, and its wildcards cannot hold unescaped slashes
// before more path, as in /v1/job/cron/periodic-7/summary.
type router struct {
	exact map[string]*route
	wild  map[string][]*route // by the first two segments, longest first
}

func newRouter(table []*route) (*router, error) {
	rt := &router{exact: map[string]*route{}, wild: map[string][]*route{}}
	seen := map[string]bool{}
	for _, r := range table {
		if seen[r.path] || len(r.actions) == 0 {
			return nil, fmt.Errorf("route %s: stated twice, or without a handler", r.path)
		}
		seen[r.path] = true
		methods := make([]string, 0, len(r.actions))
		for m := range r.actions {
			methods = append(methods, m)
		}
		slices.Sort(methods)
		r.allow = strings.Join(methods, ", ")
		if !strings.Contains(r.path, "*") {
			rt.exact[r.path] = r
			continue
		}
		r.literal = len(strings.ReplaceAll(r.path, "*", ""))
		pattern, err := regexp.Compile("^" + strings.ReplaceAll(regexp.QuoteMeta(r.path), `\*`, "(.+)") + "$")
		if err != nil {
			return nil, fmt.Errorf("route %s: %w", r.path, err)
		}
		r.pattern = pattern
		key := bucket(r.path)
		rt.wild[key] = append(rt.wild[key], r)
	}
	for _, routes := range rt.wild {
		slices.SortStableFunc(routes, func(a, b *route) int { return b.literal - a.literal })
	}
	return rt, nil
}

// bucket is a path's first two segments.
func bucket(path string) string {
	parts := strings.SplitN(path, "/", 4)
	if len(parts) < 3 {
		return path
	}
	return parts[1] + "/" + parts[2]
}

// match finds the route of an escaped path.
func (rt *router) match(escaped string) match {
	if r, ok := rt.exact[escaped]; ok {
		return match{route: r}
	}
	for _, r := range rt.wild[bucket(escaped)] {
		found := r.pattern.FindStringSubmatch(escaped)
		if found == nil {
			continue
		}
		m := match{route: r}
		for _, raw := range found[1:] {
			id, err := cleanID(raw)
			if err != nil && m.err == nil {
				m.err = err
			}
			m.ids = append(m.ids, id)
		}
		return m
	}
	return match{}
}

// maxID bounds a name in a path, in bytes.
const maxID = 1024

func cleanID(raw string) (string, error) {
	id, err := url.PathUnescape(raw)
	if err != nil {
		return "", structs.Errorf(structs.CodeBadRequest, "path %q: %w", raw, err)
	}
	if len(id) > maxID {
		return "", structs.Errorf(structs.CodeBadRequest, "the name in the path has %d bytes; at most %d are allowed", len(id), maxID)
	}
	if !utf8.ValidString(id) || strings.Contains(id, "\x00") {
		return "", structs.Errorf(structs.CodeBadRequest, "the name in the path, %q, must be UTF-8 without zero bytes", id)
	}
	return id, nil
}
