package httpapi

import (
	"net/http"
	"strconv"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// agentMonitor streams the log of an agent: this one, or that of the node or server named.
func agentMonitor(r *request) (any, error) {
	args := structs.AgentMonitorRequest{
		NodeID: r.query.Get("node_id"), ServerID: r.query.Get("server_id"), LogLevel: r.query.Get("log_level"), QueryOptions: r.opts,
	}
	var err error
	if args.LogJSON, err = r.bool("log_json", false); err != nil {
		return nil, err
	}
	if args.LogIncludeLocation, err = r.bool("log_include_location", false); err != nil {
		return nil, err
	}
	plain, err := r.bool("plain", false)
	if err != nil {
		return nil, err
	}
	from, err := r.s.cfg.Backend.Stream(r.Context(), wire.MethodAgentMonitor, &args)
	if err != nil {
		return nil, err
	}
	header := r.w.Header()
	header.Set("Cache-Control", "no-cache")
	header.Set("X-Content-Type-Options", "nosniff")
	if !plain {
		header.Set("Content-Type", "application/json")
		return answered, relay(r, from, 0, r.s.cfg.FrameHeartbeat,
			func(f structs.StreamFrame) error { return r.writeJSON(f, "") },
			func() error { return r.writeJSON(empty{}, "") })
	}
	header.Set("Content-Type", "text/plain; charset=utf-8")
	return answered, relay(r, from, 0, r.s.cfg.FrameHeartbeat,
		func(f structs.StreamFrame) error { _, err := r.w.Write(f.Data); return err },
		func() error { _, err := r.w.Write(nil); return err })
}

func agentHost(r *request) (any, error) {
	args := structs.AgentHostRequest{NodeID: r.query.Get("node_id"), ServerID: r.query.Get("server_id"), QueryOptions: r.opts}
	var reply structs.AgentHostReply
	if err := r.queryClient(wire.MethodAgentHost, &args, &reply); err != nil {
		return nil, err
	}
	return &reply, nil
}

// agentProfile answers with the bytes of a runtime profile.
func agentProfile(r *request) (any, error) {
	args := structs.AgentProfileRequest{NodeID: r.query.Get("node_id"), ServerID: r.query.Get("server_id"), Profile: r.id(), QueryOptions: r.opts}
	var err error
	if args.Seconds, err = r.int("seconds"); err != nil {
		return nil, err
	}
	if args.Debug, err = r.int("debug"); err != nil {
		return nil, err
	}
	gc, err := r.int("gc")
	if err != nil {
		return nil, err
	}
	args.GC = gc > 0
	var reply structs.AgentProfileReply
	if err := r.queryClient(wire.MethodAgentProfile, &args, &reply); err != nil {
		return nil, err
	}
	header := r.w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Length", strconv.Itoa(len(reply.Payload)))
	header.Set("Content-Type", "application/octet-stream")
	if reply.Text {
		header.Set("Content-Type", "text/plain; charset=utf-8")
	} else {
		header.Set("Content-Disposition", `attachment; filename="profile"`)
	}
	r.w.WriteHeader(http.StatusOK)
	_, _ = r.w.Write(reply.Payload) // a caller that is gone needs no answer
	return answered, nil
}
