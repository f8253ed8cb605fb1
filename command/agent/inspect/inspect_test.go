package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/leaks"
	"github.com/nomadish/nomadish/structs"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// inspector is one of an agent that logs warnings.
func inspector(monitors int, debug bool) (*Inspector, hclog.InterceptLogger) {
	logger := hclog.NewInterceptLogger(&hclog.LoggerOptions{Name: "agent", Level: hclog.Warn, Output: io.Discard})
	return New(Options{
		ID: func() string { return "the-agent" }, Logger: logger, Debug: debug, MaxMonitors: monitors,
		Lines: func(to io.Writer, _ bool) io.Writer { return to },
	}), logger
}

// watch runs a monitor whose reader takes a frame when it is told to; ended has its error.
type watch struct {
	frames chan *structs.StreamFrame
	ended  chan error
	stop   context.CancelFunc
}

func startWatch(ctx context.Context, i *Inspector, args *structs.AgentMonitorRequest) *watch {
	ctx, stop := context.WithCancel(ctx)
	w := &watch{frames: make(chan *structs.StreamFrame), ended: make(chan error, 1), stop: stop}
	go func() {
		w.ended <- i.Monitor(ctx, args, func(v any) error {
			select {
			case w.frames <- v.(*structs.StreamFrame):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	return w
}

func (w *watch) end(t *testing.T) {
	t.Helper()
	w.stop()
	if err := <-w.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

func TestMonitor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, logger := inspector(4, false)
		debug := startWatch(t.Context(), i, &structs.AgentMonitorRequest{LogLevel: "DEBUG"})
		asJSON := startWatch(t.Context(), i, &structs.AgentMonitorRequest{LogJSON: true, LogIncludeLocation: true})
		for _, w := range []*watch{debug, asJSON} {
			if first := <-w.frames; len(first.Data) > 0 {
				t.Errorf("the first frame has %q", first.Data)
			}
		}
		logger.Named("http").Debug("below the agent's own level", "key", 1)
		logger.Trace("below what was asked for")
		if got := string((<-debug.frames).Data); !strings.Contains(got, "[DEBUG] agent.http: below the agent's own level: key=1\n") || strings.Contains(got, "asked for") {
			t.Errorf("debug: %q", got)
		}
		logger.Info("for programs")
		var line map[string]any
		if err := json.Unmarshal((<-asJSON.frames).Data, &line); err != nil || line["@message"] != "for programs" || !strings.Contains(line["@caller"].(string), "inspect_test.go") {
			t.Errorf("JSON: %v, %v", line, err)
		}
		<-debug.frames
		debug.end(t)
		asJSON.end(t)
	})
}

// A reader that takes nothing gets what the buffer holds, in order, and is told how much it missed. The agent does not wait.
func TestMonitorOfASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, logger := inspector(1, false)
		w := startWatch(t.Context(), i, &structs.AgentMonitorRequest{})
		<-w.frames
		const lines = 2000
		fill := strings.Repeat("x", 1000)
		for n := range lines {
			logger.Info("line", "n", n, "fill", fill)
			if n == 0 {
				synctest.Wait() // the first one is on its way, and taken by nobody
			}
		}
		first, rest := string((<-w.frames).Data), string((<-w.frames).Data)
		if !strings.Contains(first, " n=0 ") || strings.Count(first, "\n") != 1 {
			t.Errorf("the first frame: %.200q", first)
		}
		kept := strings.Count(rest, "fill=")
		if len(rest) > maxBuffered+1024 || kept < 200 || !strings.Contains(rest, " n=1 ") {
			t.Errorf("%d bytes, %d lines: %.100q", len(rest), kept, rest)
		}
		last := rest[strings.LastIndex(strings.TrimSuffix(rest, "\n"), "\n")+1:]
		var missed int
		if at := strings.Index(last, "dropped="); at >= 0 {
			missed = atoi(last[at+len("dropped="):])
		}
		if kept+1+missed != lines {
			t.Errorf("%d lines came, %d of %d were dropped, as is said: %q", kept+1, missed, lines, last)
		}
		logger.Info("afterwards")
		if got := string((<-w.frames).Data); !strings.Contains(got, "afterwards") || strings.Contains(got, "dropped") {
			t.Errorf("afterwards: %q", got)
		}
		w.end(t)
	})
}

func atoi(text string) (n int) {
	for _, c := range strings.TrimSpace(text) {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + int(c-'0')
	}
	return n
}

func TestMonitorsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, logger := inspector(2, false)
		one, two := startWatch(t.Context(), i, &structs.AgentMonitorRequest{}), startWatch(t.Context(), i, &structs.AgentMonitorRequest{})
		<-one.frames
		<-two.frames
		third := startWatch(t.Context(), i, &structs.AgentMonitorRequest{})
		if err := <-third.ended; structs.CodeOf(err) != structs.CodeLimited || !strings.Contains(err.Error(), "log_monitor_max_streams") {
			t.Errorf("a third one: %v", err)
		}
		third.stop()
		one.end(t)
		again := startWatch(t.Context(), i, &structs.AgentMonitorRequest{})
		<-again.frames
		again.end(t)
		two.end(t)
		logger.Error("nobody listens any more") // and nobody is told
		for level, want := range map[string]structs.Code{"loud": structs.CodeBadRequest, "off": structs.CodeBadRequest} {
			if err := i.Monitor(t.Context(), &structs.AgentMonitorRequest{LogLevel: level}, nil); structs.CodeOf(err) != want || !strings.Contains(err.Error(), "Unknown log level") {
				t.Errorf("level %s: %v", level, err)
			}
		}
	})
}

func TestDebugOnly(t *testing.T) {
	i, _ := inspector(1, false)
	if _, err := i.Host(t.Context(), &structs.AgentHostRequest{}); !errors.Is(err, structs.ErrForbidden) || !strings.Contains(err.Error(), "enable_debug") {
		t.Errorf("host: %v", err)
	}
	if _, err := i.Profile(t.Context(), &structs.AgentProfileRequest{Profile: "heap"}); !errors.Is(err, structs.ErrForbidden) {
		t.Errorf("profile: %v", err)
	}
}

func TestHost(t *testing.T) {
	t.Setenv("MY_DATABASE", "hunter2")
	t.Setenv("LANG", "C.UTF-8")
	i, _ := inspector(1, true)
	got, err := i.Host(t.Context(), &structs.AgentHostRequest{})
	if err != nil {
		t.Fatal(err)
	}
	h := got.HostData
	if got.AgentID != "the-agent" || h.OS == "" || len(h.Network) == 0 || h.Hosts == "" {
		t.Errorf("%+v", got)
	}
	if h.Environment["LANG"] != "C.UTF-8" || h.Environment["MY_DATABASE"] != "<redacted>" {
		t.Errorf("environment: %v", h.Environment)
	}
	raw, err := json.Marshal(got)
	if err != nil || bytes.Contains(raw, []byte("hunter2")) {
		t.Errorf("%v: %s", err, raw)
	}
	long := environment([]string{"PATH=" + strings.Repeat("x", 1<<20), "TOKEN", "=odd"})
	if len(long["PATH"]) > maxText || long["TOKEN"] != redacted {
		t.Errorf("%d bytes, %q", len(long["PATH"]), long["TOKEN"])
	}
}

func TestCommandLine(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		if got := strings.Join(commandLine(args), " "); got != want {
			t.Errorf("%q: %q", args, got)
		}
	}
	f("nomadish agent -dev", "nomadish", "agent", "-dev")
	f("nomadish agent -encrypt=<redacted> -dev", "nomadish", "agent", "-encrypt=c2VjcmV0", "-dev")
	f("nomadish agent --encrypt <redacted> -dev", "nomadish", "agent", "--encrypt", "c2VjcmV0", "-dev")
	f("a encrypt b", "a", "encrypt", "b")
}

func TestProfile(t *testing.T) {
	i, _ := inspector(1, true)
	take := func(args structs.AgentProfileRequest) (*structs.AgentProfileReply, error) {
		return i.Profile(t.Context(), &args)
	}
	f := func(args structs.AgentProfileRequest, text bool, begins string) {
		t.Helper()
		got, err := take(args)
		if err != nil || got.Text != text || !bytes.HasPrefix(got.Payload, []byte(begins)) || got.AgentID != "the-agent" {
			t.Errorf("%+v: %v, %+v", args, err, got)
		}
	}
	f(structs.AgentProfileRequest{Profile: "heap", GC: true}, false, "\x1f\x8b")
	f(structs.AgentProfileRequest{Profile: "goroutine", Debug: 2}, true, "goroutine ")
	f(structs.AgentProfileRequest{Profile: "cmdline"}, true, "")
	bad := func(args structs.AgentProfileRequest, code structs.Code) {
		t.Helper()
		if _, err := take(args); structs.CodeOf(err) != code {
			t.Errorf("%+v: %v, want %s", args, err, code)
		}
	}
	bad(structs.AgentProfileRequest{Profile: "invalid"}, structs.CodeNotFound)
	bad(structs.AgentProfileRequest{Profile: "profile", Seconds: -1}, structs.CodeBadRequest)
	bad(structs.AgentProfileRequest{Profile: "profile", Seconds: 1 << 40}, structs.CodeBadRequest)
	bad(structs.AgentProfileRequest{Profile: "heap", Debug: 3}, structs.CodeBadRequest)

	// While one is taken no other of its kind is, and it ends with its caller.
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := i.Profile(ctx, &structs.AgentProfileRequest{Profile: "profile", Seconds: maxSeconds})
			ended <- err
		}()
	}
	if err := <-ended; structs.CodeOf(err) != structs.CodeConflict {
		t.Errorf("two profiles of the CPU at once: %v", err)
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a profile whose caller is gone: %v", err)
	}
	if err := wait(t.Context(), 0); err != nil {
		t.Error(err)
	}
	small := &bounded{most: 3}
	if _, err := small.Write([]byte("four")); err == nil || structs.CodeOf(small.err) != structs.CodeTooLarge {
		t.Errorf("%v, %v", err, small.err)
	}
}
