package command

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"
)

// noLeader is what a server answers without a leader, after it has waited for one.
var noLeader = refusal{http.StatusInternalServerError, "No cluster leader: 1 of 3 servers can be seen"}

// impatient runs job status against an agent that answers it once it was asked for the leader and, if said is not nil,
// something was printed.
func impatient(t *testing.T, f *fake, reported chan struct{}) (int, string) {
	t.Helper()
	requested := make(chan struct{})
	inner := f.Config.Handler
	f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/status/leader":
			defer close(requested)
		case "/v1/jobs":
			<-requested
			if reported != nil {
				<-reported
			}
		}
		inner.ServeHTTP(w, r)
	})
	out := &signalled{is: reported}
	r := &runner{
		name: "job status", spec: specs()["job status"], out: &bytes.Buffer{}, err: out, ctx: t.Context(),
		now: func() time.Time { return present }, patience: time.Nanosecond,
	}
	code := r.Run([]string{"-address", f.URL})
	return code, out.String()
}

// signalled is a buffer that tells of what is written first, if is is not nil.
type signalled struct {
	bytes.Buffer
	is chan struct{}
}

func (s *signalled) Write(p []byte) (int, error) {
	if s.is != nil && s.Len() == 0 {
		defer close(s.is)
	}
	return s.Buffer.Write(p)
}

// Who waits for an answer without a leader is told so meanwhile, and in the end what would do.
func TestWaitingForALeaderIsReported(t *testing.T) {
	f := newFake(t).on("GET /v1/status/leader", noLeader).on("GET /v1/jobs", noLeader)
	code, text := impatient(t, f, make(chan struct{}))
	const want = "waiting for a leader …\nNo cluster leader: 1 of 3 servers can be seen (HTTP 500)\n" +
		"With -stale the server at -address answers by itself, without a leader; the answer may be out of date.\n"
	if code != exitFailed || text != want {
		t.Errorf("exit code %d, stderr\n%s\nwant\n%s", code, text, want)
	}
}

func TestASlowLeaderIsWaitedForInSilence(t *testing.T) {
	f := cluster(t)
	if code, text := impatient(t, f, nil); code != exitDone || text != "" {
		t.Errorf("exit code %d, stderr %q", code, text)
	}
}

func TestStaleIsSuggestedWhereItHelps(t *testing.T) {
	f := newFake(t).on("GET /v1/jobs", noLeader).on("GET /v1/queue", noLeader).
		on("GET /v1/nodes", refusal{http.StatusInternalServerError, "broken"})
	for line, want := range map[string]bool{"job status": true, "job status -stale": false, "queue": true, "queue -stale": false, "node status": false} {
		got := f.run(t, strings.Fields(line)...)
		if got.code != exitFailed || strings.Contains(got.err, "-stale") != want || strings.Contains(got.err, "waiting") {
			t.Errorf("%s: exit code %d, stderr %q", line, got.code, got.err)
		}
	}
	early := refusal{http.StatusInternalServerError, "No cluster leader: not bootstrapped yet: 1 of 3 servers (bootstrap_expect) can be seen: a"}
	if got := newFake(t).on("GET /v1/jobs", early).run(t, "job", "status"); got.code != exitFailed || strings.Contains(got.err, "-stale") {
		t.Errorf("a server that knows nothing: %q", got.err)
	}
}

// What a server shows by itself may be old: how old, is said beside it.
func TestStaleSaysHowOld(t *testing.T) {
	f := func(known, contact, want string, args ...string) {
		t.Helper()
		agent := cluster(t)
		inner := agent.Config.Handler
		agent.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if known != "" && !strings.HasPrefix(r.URL.Path, "/v1/client/") { // those are answered by clients
				w.Header().Set("X-Nomad-KnownLeader", known)
				w.Header().Set("X-Nomad-LastContact", contact)
			}
			inner.ServeHTTP(w, r)
		})
		if got := agent.run(t, args...); got.code != exitDone || got.err != want {
			t.Errorf("%v, leader known %q, heard %q ms ago: exit code %d, stderr\n%s\nwant\n%s", args, known, contact, got.code, got.err, want)
		}
	}
	const (
		old    = "The server has had no contact with a leader for 1m5s: this output may be that old.\n"
		unsure = "The server knows no leader, and does not know since when: this output may be out of date.\n"
		alone  = "The server knows no leader at present.\n"
	)
	f("false", "65000", old, "job", "status", "-stale")
	f("true", "65000", old, "job", "status", "-stale") // it has not noticed yet
	f("false", "65000", old, "node", "status", "-stale", "-json")
	f("false", "0", unsure, "job", "status", "-stale")
	f("false", "1500", alone, "job", "status", "-stale")
	f("true", "40", "", "job", "status", "-stale")
	f("true", "40", "", "alloc", "status", "-stale", allocA)
	f("true", "40", "", "node", "status", "-stale", "gpu-1")
	f("false", "65000", old, "alloc", "status", "-stale", allocA)
	f("", "", "", "job", "status", "-stale") // an answer that does not say
	f("false", "65000", "", "job", "status") // the leader's, who was asked whether it still leads
}
