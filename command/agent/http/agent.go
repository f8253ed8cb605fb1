package httpapi

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func agentSelf(r *request) (any, error) {
	return struct {
		Config map[string]any               `json:"config"`
		Member structs.ServerMember         `json:"member"`
		Stats  map[string]map[string]string `json:"stats"`
	}{r.s.cfg.Agent.Self().Config, r.self(), r.s.cfg.Agent.Stats()}, nil
}

type health struct {
	Ok      bool   `json:"ok"`
	Message string `json:"message"`
}

// agentHealth is 200 when all that was requested is healthy, else 500; the body
// states what is not.
func agentHealth(r *request) (any, error) {
	kind := r.query.Get("type")
	if kind != "" && kind != "server" && kind != "client" {
		return nil, badRequest("type %q: must be server or client", kind)
	}
	self := r.s.cfg.Agent.Self()
	var out struct {
		Client *health `json:"client,omitempty"`
		Server *health `json:"server,omitempty"`
	}
	status := http.StatusOK
	set := func(ok bool, msg string) *health {
		if ok {
			return &health{true, "ok"}
		}
		status = http.StatusInternalServerError
		return &health{false, msg}
	}
	if kind != "client" && self.Server {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		var leader structs.StringReply
		opts := r.opts
		opts.AllowStale, opts.Region = true, self.Region // it is about this agent
		err := r.s.cfg.Backend.Call(ctx, wire.MethodLeader, &structs.EmptyRequest{QueryOptions: opts}, &leader)
		switch {
		case err != nil:
			out.Server = set(false, err.Error())
		case r.s.cfg.Agent.Stats()["nomad"]["disk_full"] != "":
			out.Server = set(false, r.s.cfg.Agent.Stats()["nomad"]["disk_full"])
		default:
			out.Server = set(leader.Value != "", "no cluster leader")
		}
	}
	if kind != "server" && self.Client {
		out.Client = set(len(r.s.cfg.Agent.Servers()) > 0, "no known servers")
	}
	if kind == "server" && out.Server == nil {
		out.Server = set(false, "server not enabled")
	}
	if kind == "client" && out.Client == nil {
		out.Client = set(false, "client not enabled")
	}
	r.w.Header().Set("Content-Type", "application/json")
	if status != http.StatusOK {
		r.w.WriteHeader(status)
	}
	return out, nil
}

func agentServers(r *request) (any, error) {
	if !r.s.cfg.Agent.Self().Client {
		return nil, structs.Errorf(structs.CodeUnsupported, "this agent runs no client; the servers are at /v1/status/peers").WithHint("to query a client, set the address of its agent (-address)")
	}
	return list(r.s.cfg.Agent.Servers()), nil
}

func agentSetServers(r *request) (any, error) {
	addrs := r.query["address"]
	if len(addrs) == 0 {
		return nil, badRequest("address: missing; name at least one server")
	}
	out := make([]string, 0, len(addrs))
	for _, a := range addrs {
		addr, err := rpcAddress(a)
		if err != nil {
			return nil, err
		}
		out = append(out, addr)
	}
	return nil, r.s.cfg.Agent.SetServers(out)
}

// rpcAddress is a server's address as somebody states it, with the port that servers have unless it is stated.
func rpcAddress(a string) (string, error) {
	if host, port, err := net.SplitHostPort(a); err == nil && host != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err == nil && n > 0 {
			return a, nil
		}
	} else if host := strings.Trim(a, "[]"); err != nil && host != "" && !strings.ContainsAny(host, " /[]") &&
		(!strings.Contains(host, ":") || net.ParseIP(host) != nil) {
		return net.JoinHostPort(host, strconv.Itoa(structs.DefaultPortRPC)), nil
	}
	return "", badRequest("address %q: must be host or host:port", a)
}

func agentReload(r *request) (any, error) { return nil, r.s.cfg.Agent.Reload() }

func metricsGet(r *request) (any, error) {
	switch format := r.query.Get("format"); format {
	case "", "json":
		if r.s.cfg.Metrics == nil {
			return nil, unsupported("metrics in JSON")
		}
		// It is long, and takes time to encode; the other format is neither.
		if err := r.s.guard.checkCostly(r.Request); err != nil {
			return nil, r.s.refuse(r.Request, err)
		}
		pretty, err := r.bool("pretty", false)
		if err != nil {
			return nil, err
		}
		r.w.Header().Set("Content-Type", "application/json")
		return answered, r.s.cfg.Metrics(r.w, pretty)
	case "prometheus":
		if r.s.cfg.Prometheus == nil {
			return nil, &statusError{http.StatusUnsupportedMediaType, "Prometheus is not enabled"}
		}
		r.s.cfg.Prometheus.ServeHTTP(r.w, r.Request)
		return answered, nil
	default:
		return nil, badRequest("format %q: must be json or prometheus", format)
	}
}
