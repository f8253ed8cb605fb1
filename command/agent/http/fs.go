package httpapi

import (
	"strconv"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func (r *request) fsRequest(needPath bool) (structs.FSRequest, error) {
	args := structs.FSRequest{AllocID: r.id(), Path: r.query.Get("path"), QueryOptions: r.opts}
	if args.Path == "" {
		if needPath {
			return args, badRequest("path: missing; name a file in the allocation's directory")
		}
		args.Path = "/"
	}
	return args, nil
}

func fsList(r *request) (any, error) {
	args, err := r.fsRequest(false)
	if err != nil {
		return nil, err
	}
	var reply structs.FSListReply
	if err := r.queryClient(wire.MethodClientFSList, &args, &reply); err != nil {
		return nil, err
	}
	return list(reply.Files), nil
}

func fsStat(r *request) (any, error) {
	args, err := r.fsRequest(true)
	if err != nil {
		return nil, err
	}
	var reply structs.FSStatReply
	if err := r.queryClient(wire.MethodClientFSStat, &args, &reply); err != nil {
		return nil, err
	}
	if reply.Info == nil {
		return nil, notFound("file")
	}
	return reply.Info, nil
}

func fsCat(r *request) (any, error) {
	args, err := r.fsRequest(true)
	if err != nil {
		return nil, err
	}
	args.Origin = originStart
	return r.plain(args)
}

func fsReadAt(r *request) (any, error) {
	args, err := r.fsRequest(true)
	if err != nil {
		return nil, err
	}
	if args.Offset, err = r.int("offset"); err != nil {
		return nil, err
	}
	if args.Offset < 0 {
		return nil, badRequest("offset %d: must not be negative", args.Offset)
	}
	if args.Limit, err = r.int("limit"); err != nil {
		return nil, err
	}
	args.Limit = max(0, args.Limit) // as in Nomad: none
	args.Origin = originStart
	return r.plain(args)
}

func fsStream(r *request) (any, error) {
	args, err := r.fsRequest(true)
	if err != nil {
		return nil, err
	}
	if err := r.position(&args, true); err != nil {
		return nil, err
	}
	return r.frames(args)
}

func fsLogs(r *request) (any, error) {
	args := structs.FSRequest{AllocID: r.id(), Task: r.query.Get("task"), LogType: r.query.Get("type"), QueryOptions: r.opts}
	if args.Task == "" {
		return nil, badRequest("task: missing; name the task whose log to read")
	}
	if args.LogType != "stdout" && args.LogType != "stderr" {
		return nil, badRequest("type %q: must be stdout or stderr", args.LogType)
	}
	if err := r.position(&args, false); err != nil {
		return nil, err
	}
	plain, err := r.bool("plain", false)
	if err != nil {
		return nil, err
	}
	if plain {
		return r.plain(args)
	}
	return r.frames(args)
}

const (
	originStart = "start"
	originEnd   = "end"
)

// position reads where to begin and whether to go on.
func (r *request) position(args *structs.FSRequest, follow bool) error {
	var err error
	if args.Follow, err = r.bool("follow", follow); err != nil {
		return err
	}
	if args.Offset, err = r.int("offset"); err != nil {
		return err
	}
	if args.Offset < 0 {
		return badRequest("offset %d: must not be negative; count it from the end with origin=end", args.Offset)
	}
	args.Origin = first(r.query.Get("origin"), originStart)
	if args.Origin != originStart && args.Origin != originEnd {
		return badRequest("origin %q: must be start or end", args.Origin)
	}
	return nil
}

func (r *request) int(name string) (int64, error) {
	v := r.query.Get(name)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return 0, badRequest("%s %q: must be a whole number", name, v)
	}
	return n, nil
}

// frames writes a file as Nomad frames it: JSON values, {} while nothing comes.
func (r *request) frames(args structs.FSRequest) (any, error) {
	from, err := r.s.cfg.Backend.Stream(r.Context(), wire.MethodClientFSRead, &args)
	if err != nil {
		return nil, err
	}
	r.w.Header().Set("Content-Type", "application/json")
	return answered, relay(r, from, 0, r.s.cfg.FrameHeartbeat,
		func(f structs.StreamFrame) error { return r.writeJSON(f, "") },
		func() error { return r.writeJSON(empty{}, "") })
}

// plain writes a file's bytes. They are a task's, so no browser shall take them
// for more than text.
func (r *request) plain(args structs.FSRequest) (any, error) {
	args.PlainText = true
	from, err := r.s.cfg.Backend.Stream(r.Context(), wire.MethodClientFSRead, &args)
	if err != nil {
		return nil, err
	}
	r.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	r.w.Header().Set("X-Content-Type-Options", "nosniff")
	var beat func() error
	if args.Follow {
		beat = func() error { _, err := r.w.Write(nil); return err } // begins the answer
	}
	return answered, relay(r, from, 0, r.s.cfg.FrameHeartbeat,
		func(f structs.StreamFrame) error { _, err := r.w.Write(f.Data); return err }, beat)
}
