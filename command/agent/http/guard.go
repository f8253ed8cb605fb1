package httpapi

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// guard refuses requests that a web page makes with its reader's browser: those under a name that is not the agent's (DNS
// rebinding), and those of other sites that would change something. Every request passes it before its path is looked at.
// It does not change after newGuard.
type guard struct {
	hosts       map[string]bool // in lower case
	domains     []string        // ".example.com": all names below it
	any         bool            // every name is allowed
	certificate func(host string) bool
	origins     *http.CrossOriginProtection
	logged      wire.LogLimiter // callers of which a refusal was logged
}

func newGuard(cfg *Config) (*guard, error) {
	g := &guard{hosts: map[string]bool{"localhost": true}, certificate: cfg.CertificateHost, origins: http.NewCrossOriginProtection()}
	for _, host := range cfg.Hosts {
		g.hosts[cleanHost(host)] = true
	}
	for _, host := range cfg.AllowedHosts {
		host = cleanHost(host)
		switch domain := strings.TrimPrefix(host, "*"); {
		case host == "*":
			g.any = true
		case strings.HasPrefix(domain, "."):
			g.domains = append(g.domains, domain)
		default:
			g.hosts[host] = true
			// A proxy that does not pass Host on makes the origin of its pages look foreign.
			for _, origin := range []string{"https://" + host, "http://" + host} {
				if err := g.origins.AddTrustedOrigin(origin); err != nil {
					return nil, fmt.Errorf("allowed host %q: %w", host, err)
				}
			}
		}
	}
	delete(g.hosts, "")
	for _, origin := range cfg.TrustedOrigins {
		if err := g.origins.AddTrustedOrigin(strings.ToLower(origin)); err != nil {
			return nil, fmt.Errorf("trusted origin: %w", err)
		}
	}
	return g, nil
}

// check returns why a request is refused, or nil.
func (g *guard) check(r *http.Request) error {
	if !g.allows(r) {
		host, _ := splitHost(r.Host)
		return structs.Errorf(structs.CodeForbidden, "the request is for the host %s, which is not a name of this agent",
			quoted(cmp.Or(host, r.Host))).WithHint(`use the agent's IP address or localhost, or add the name to http_config { allowed_hosts = ["NAME"] } in the agent's configuration`)
	}
	if err := g.origins.Check(r); err != nil {
		return structs.Errorf(structs.CodeForbidden, "a web page of another site cannot change anything here; the origin of the request is %s",
			quoted(r.Header.Get("Origin"))).
			WithHint(`if the page is yours, add its origin to http_config { trusted_origins = ["https://NAME"] } in the agent's configuration`)
	}
	return nil
}

// checkCostly returns why a request must not come from a page, or nil. It is for what costs the agent something, or holds one of
// few places, although it only reads: a page can have it sent without seeing the answer. Browsers state where a request comes from,
// in one header or another; pages that Origin or Referer names are trusted as by check. A browser that states nothing, as over
// plain HTTP to another machine, may be led by a page, and is refused: programs are not taken for browsers.
func (g *guard) checkCostly(r *http.Request) error {
	changing := *r
	changing.Method = http.MethodPost // for which the origin counts
	refused := structs.Errorf(structs.CodeForbidden, "a web page of another site cannot make this request").
		WithHint(`use a program such as curl or the nomadish command; if the page is yours, add its origin to http_config { trusted_origins = ["https://NAME"] } in the agent's configuration`)
	if g.origins.Check(&changing) != nil {
		return refused
	}
	if r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
		return nil // it was looked at
	}
	if referer, err := url.Parse(r.Header.Get("Referer")); err == nil && referer.Host != "" && referer.Host == r.Host {
		return nil
	}
	for _, name := range []string{"Referer", "Cookie", "Accept-Language"} {
		if r.Header.Get(name) != "" {
			return refused
		}
	}
	if strings.HasPrefix(r.UserAgent(), "Mozilla/") { // every browser's begins so, and no page can change it
		return refused
	}
	return nil
}

// allows reports whether a request's host is the agent's. An IP address always is: rebinding needs a name.
func (g *guard) allows(r *http.Request) bool {
	if g.any {
		return true
	}
	if r.Host == "" {
		// No browser leaves it out, but health checks of load balancers in HTTP/1.0 do.
		return !r.ProtoAtLeast(1, 1) && isSafe(r.Method)
	}
	host, isIP := splitHost(r.Host)
	switch {
	case isIP:
		return true
	case host == "":
		return false
	case g.hosts[host]:
		return true
	}
	for _, domain := range g.domains {
		if len(host) > len(domain) && strings.HasSuffix(host, domain) {
			return true
		}
	}
	return g.certificate != nil && g.certificate(host)
}

// isSafe reports whether a method must not change anything.
func isSafe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// splitHost returns the host of a Host header, cleaned, and whether it is an IP address. The host is empty if the header is
// not of the form host or host:port.
func splitHost(header string) (host string, isIP bool) {
	host = header
	if bare, ok := strings.CutPrefix(header, "["); ok && strings.HasSuffix(bare, "]") {
		host = header + ":" // SplitHostPort takes brackets with a port only
	}
	if strings.Contains(host, ":") {
		h, port, err := net.SplitHostPort(host)
		if err != nil || strings.Trim(port, "0123456789") != "" {
			return "", false
		}
		host = h
	}
	host = cleanHost(host)
	addr, err := netip.ParseAddr(host)
	isIP = err == nil
	if strings.HasPrefix(header, "[") && (!isIP || !addr.Is6()) {
		return "", false
	}
	return host, isIP
}

// cleanHost returns a host in lower case without the dot at its end.
func cleanHost(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// quoted returns a caller's text for a message, bounded.
func quoted(text string) string {
	const most = 100
	if len(text) > most {
		text = text[:most] + "…"
	}
	return fmt.Sprintf("%q", text)
}

// refuse logs a refusal, once an hour for each caller, and returns its error.
func (s *Server) refuse(r *http.Request, err error) error {
	caller, _, splitErr := net.SplitHostPort(r.RemoteAddr)
	if splitErr != nil {
		caller = r.RemoteAddr
	}
	if s.guard.logged.Allow(caller, time.Now()) {
		s.cfg.Logger.Warn("refused a request; more from there are not logged for an hour", "from", caller, "method", methodLabel(r.Method), "error", err)
	}
	return err
}

// goClientOnly returns h for a GET of Nomad's own Go client, which knows no other method for it; every other request is refused
// with 405, as a GET should not change anything. No web page can send one: browsers have their own User-Agent, and a page that
// sets another must send OPTIONS first, which is not allowed here. The other headers, which browsers add and that client does
// not, are looked at in case something between has replaced User-Agent.
func goClientOnly(h handlerFunc) handlerFunc {
	return func(r *request) (any, error) {
		marked := r.Method != http.MethodGet || !strings.HasPrefix(r.UserAgent(), "Go-http-client/")
		for _, name := range []string{"Origin", "Referer", "Cookie", "Accept-Language", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest"} {
			marked = marked || r.Header.Get(name) != ""
		}
		if marked {
			r.w.Header().Set("Allow", "POST, PUT")
			return nil, &statusError{http.StatusMethodNotAllowed, "method " + r.Method + " does not change anything here: send PUT (Nomad's own Go client alone may send GET)"}
		}
		return h(r)
	}
}
