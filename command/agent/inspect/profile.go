package inspect

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strings"
	"time"

	"github.com/nomadish/nomadish/structs"
)

const (
	// maxSeconds bounds how long a profile or a trace is taken.
	maxSeconds = 300
	// maxProfile bounds its size in bytes, so that it fits an RPC message.
	maxProfile = 48 << 20
)

// Profile takes a runtime profile. It ends early, with ctx's error, when ctx does. It returns ErrNotFound if there is no
// profile of that name, and ErrConflict if one of its kind is being taken.
func (i *Inspector) Profile(ctx context.Context, args *structs.AgentProfileRequest) (*structs.AgentProfileReply, error) {
	if err := i.debugOnly("a profile"); err != nil {
		return nil, err
	}
	if args.Seconds < 0 || args.Seconds > maxSeconds {
		return nil, structs.Errorf(structs.CodeBadRequest, "seconds %d: must be from 1 to %d", args.Seconds, maxSeconds)
	}
	if args.Debug < 0 || args.Debug > 2 {
		return nil, structs.Errorf(structs.CodeBadRequest, "debug %d: must be 0, 1 or 2", args.Debug)
	}
	select {
	case i.profiling <- struct{}{}:
		defer func() { <-i.profiling }()
	default:
		return nil, structs.Errorf(structs.CodeLimited, "%d profiles of this agent are being taken already", cap(i.profiling)).WithHint("try again when they are done")
	}
	reply := &structs.AgentProfileReply{AgentID: i.opts.ID()}
	out := &bounded{most: maxProfile}
	var err error
	switch args.Profile {
	case "cmdline":
		reply.Payload, reply.Text = []byte(strings.Join(commandLine(os.Args), "\x00")), true
		return reply, nil
	case "profile":
		if err = pprof.StartCPUProfile(out); err != nil {
			return nil, busy("CPU profile", err)
		}
		err = wait(ctx, args.Seconds)
		pprof.StopCPUProfile()
	case "trace":
		if err = trace.Start(out); err != nil {
			return nil, busy("trace", err)
		}
		err = wait(ctx, args.Seconds)
		trace.Stop()
	default:
		reply.Text = args.Debug > 0
		err = lookup(args, out)
	}
	if err == nil {
		err = out.err
	}
	if err != nil {
		return nil, err
	}
	reply.Payload = out.Bytes()
	return reply, nil
}

func busy(what string, err error) error {
	return structs.Errorf(structs.CodeConflict, "a %s cannot be taken now: %w", what, err).WithHint("try again when the other one is done")
}

// wait waits for so many seconds, one if 0, or until ctx ends.
func wait(ctx context.Context, seconds int64) error {
	t := time.NewTimer(time.Duration(max(1, seconds)) * time.Second)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func lookup(args *structs.AgentProfileRequest, out *bounded) error {
	p := pprof.Lookup(args.Profile)
	if p == nil {
		return structs.Errorf(structs.CodeNotFound, "Unknown profile: %s", structs.Clip(args.Profile, 100)).
			WithHint("allocs, block, cmdline, goroutine, heap, mutex, profile, threadcreate and trace are there")
	}
	if args.Profile == "heap" && args.GC {
		runtime.GC()
	}
	if err := p.WriteTo(out, int(args.Debug)); err != nil && out.err == nil {
		return structs.Errorf(structs.CodeInternal, "profile %s: %w", args.Profile, err)
	}
	return nil
}

// commandLine returns the arguments of a command with the values of options that are secret replaced.
func commandLine(args []string) []string {
	out := make([]string, 0, len(args))
	hide := false
	for _, arg := range args {
		name, _, valued := strings.Cut(arg, "=")
		switch {
		case hide:
			arg, hide = redacted, false
		case strings.TrimLeft(name, "-") == "encrypt" && strings.HasPrefix(name, "-"):
			if valued {
				arg = name + "=" + redacted
			}
			hide = !valued
		}
		out = append(out, arg)
	}
	return out
}

// bounded holds what is written to it, up to a size. Beyond it every write fails.
type bounded struct {
	bytes.Buffer
	most int
	err  error
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		b.err = structs.Errorf(structs.CodeTooLarge, "the profile has more than %d MiB", b.most>>20).WithHint("use fewer seconds")
		return 0, errors.New("too large")
	}
	return b.Buffer.Write(p)
}
