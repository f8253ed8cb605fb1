package config

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

// HTTP specifies which requests the HTTP API answers.
type HTTP struct {
	// AllowedHosts are names by which callers may address the agent, beside its own: "nomad.example.com", "*.example.com"
	// (all names below it), or "*" (every name; any web page can then use the API by its reader's browser).
	AllowedHosts []string `hcl:"allowed_hosts,append"`
	// TrustedOrigins are of pages that may change state although they are of other sites: "https://dash.example.com".
	TrustedOrigins []string `hcl:"trusted_origins,append"`
}

// AllowsAnyHost reports whether requests for every host are answered.
func (h *HTTP) AllowsAnyHost() bool { return slices.Contains(h.AllowedHosts, "*") }

func (k *checker) http() {
	for _, pattern := range k.c.HTTP.AllowedHosts {
		host := strings.TrimPrefix(pattern, ".")
		if below, ok := strings.CutPrefix(pattern, "*."); ok {
			host = below
		}
		switch isIP := net.ParseIP(strings.Trim(host, "[]")) != nil; {
		case pattern == "*":
		case isIP:
			k.bad("http_config.allowed_hosts", " %q: IP addresses are always allowed; leave it out", pattern)
		case host == "" || strings.ContainsAny(host, " \t\n\x00/*@?#,%[]") || strings.HasPrefix(host, "."):
			k.bad("http_config.allowed_hosts", ` %q: must be a host name, "*.example.com" for all names below one, or "*" for every name`, pattern)
		case strings.Contains(host, ":"):
			k.bad("http_config.allowed_hosts", " %q: must not have a port; a name is allowed with every port", pattern)
		}
	}
	for _, origin := range k.c.HTTP.TrustedOrigins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			k.bad("http_config.trusted_origins", " %q: must be an origin such as https://dash.example.com or http://10.0.0.5:8080, without a path", origin)
		}
	}
}
