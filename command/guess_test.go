package command

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/structs"
)

// guessing is a cluster in which things can be stopped.
func guessing(t *testing.T) *fake {
	t.Helper()
	reply := &structs.JobRegisterReply{EvalID: evalA}
	return cluster(t).paused().on("GET /v1/job/webhook", &structs.Job{ID: "webhook"}).
		on("DELETE /v1/job/web", reply).on("DELETE /v1/job/webhook", reply).
		on("PUT /v1/job/webhook/evaluate", reply).
		on("PUT /v1/allocation/"+allocA+"/stop", &structs.AllocStopReply{EvalID: evalA}).
		on("PUT /v1/node/"+nodeA+"/drain", &structs.NodeUpdateReply{}).
		on("DELETE /v1/evaluations", map[string]int{"Count": 1})
}

// paused makes a cluster one whose servers hand out no evaluations.
func (f *fake) paused() *fake {
	f.answers["GET /v1/operator/scheduler/configuration"] = []any{&structs.SchedulerConfigReply{
		SchedulerConfig: &structs.SchedulerConfiguration{PauseEvalBroker: true},
	}}
	return f
}

func TestEvalDeleteLooksAtTheBrokerFirst(t *testing.T) {
	f := guessing(t)
	f.answers["GET /v1/operator/scheduler/configuration"] = []any{&structs.SchedulerConfigReply{SchedulerConfig: &structs.SchedulerConfiguration{}}}
	for _, line := range []string{"-filter JobID!=x", "-yes -filter JobID!=x", evalA} {
		got := f.run(t, append([]string{"eval", "delete"}, strings.Fields(line)...)...)
		if got.code != exitFailed || !strings.Contains(got.err, "must be paused") || strings.Contains(got.err, "-yes") || len(f.changes()) > 0 {
			t.Errorf("%s: exit code %d, changed %q, stderr %q", line, got.code, f.changes(), got.err)
		}
	}
	f = guessing(t).on("GET /v1/evaluations", []*structs.Evaluation{webEval(evalA, structs.EvalStatusComplete), webEval(evalB, structs.EvalStatusPending)})
	f.answers["GET /v1/evaluations"] = f.answers["GET /v1/evaluations"][len(f.answers["GET /v1/evaluations"])-1:]
	f.answers["DELETE /v1/evaluations"] = []any{map[string]int{"Count": 1}}
	wants(t, f.at(t, "y\ny", "eval delete -filter JobID!=x").out, "Successfully deleted 1 evaluation\n", "1 evaluation passed over: ")
}

// A token that leads nowhere and a pool that is not there do not look like a list that is empty.
func TestAWrongPageIsNoEmptyList(t *testing.T) {
	for line, want := range map[string]string{
		"queue -page-token bogus":         `nothing follows -page-token "bogus"`,
		"node pool list -page-token zzzz": `nothing follows -page-token "zzzz"`,
		"node status -page-token zzzz":    `nothing follows -page-token "zzzz"`,
		"eval list -page-token zzzz":      `nothing follows -page-token "zzzz"`,
		"queue -node-pool nope":           "nothing at GET /v1/node/pool/nope",
		"queue -per-page -1":              "-per-page -1: allowed are 0 and more",
		"eval list -per-page -1":          "-per-page -1: allowed are 0 and more",
	} {
		f := cluster(t)
		for _, list := range []string{"/v1/queue", "/v1/node/pools", "/v1/nodes", "/v1/evaluations"} {
			f.answers["GET "+list] = []any{"[]"}
		}
		if got := f.run(t, strings.Fields(line)...); got.code != exitFailed || !strings.Contains(got.err, want) || got.out != "" {
			t.Errorf("%s: exit code %d, output %q, stderr %q, want %q", line, got.code, got.out, got.err, want)
		}
	}
	for _, list := range []string{"nodes", "jobs"} {
		f := cluster(t)
		f.answers["GET /v1/node/pool/gpu/"+list] = []any{"[]"}
		got := f.run(t, "node", "pool", list, "-page-token", "zzzz", "gpu")
		if want := `nothing follows -page-token "zzzz"`; got.code != exitFailed || !strings.Contains(got.err, want) || got.out != "" {
			t.Errorf("node pool %s: exit code %d, output %q, stderr %q, want %q", list, got.code, got.out, got.err, want)
		}
	}
}

// changes are the requests that changed something.
func (f *fake) changes() []string { return append(f.requests("DELETE"), f.requests("PUT")...) }

// Where nobody can be asked, what has only the beginning of its ID named is not stopped, purged, drained or deleted.
func TestWhatIsNamedByAPrefixIsNotStoppedUnasked(t *testing.T) {
	node := nodeA[:len(nodeA)-10]
	for line, refused := range map[string]string{
		"job stop -detach webh":                   `"webh" is only a prefix of the ID of job "webhook"`,
		"job stop -detach -purge webh":            "use the whole ID, or -yes",
		"stop -detach -purge webh":                "nothing was done",
		"job stop -detach web webh":               `job "webhook"`, // the first is not stopped either
		"job stop -namespace * webh":              `job "webhook"`,
		"node drain -enable -detach " + node:      `node "` + nodeA + `"`,
		"node drain -disable " + node:             `node "` + nodeA + `"`,
		"node-drain -enable -detach " + node:      "-yes",
		"alloc stop -detach 5f3a9c01-0":           "",
		"alloc stop -detach 5f3a9c01":             "", // as lists print it
		"alloc stop -detach 5f3a9c":               "",
		"alloc stop -detach 5f3a9c0":              "",
		"eval delete " + evalB[:14]:               "whole ID",
		"eval delete " + evalB[:18]:               "",
		"job eval -detach webh":                   "", // that takes nothing away
		"job stop -detach -yes -purge webh":       "",
		"job stop -detach webhook":                "",
		"job stop -detach web webhook":            "",
		"node drain -enable -detach gpu-1":        "", // its whole name
		"node drain -enable -detach -yes " + node: "",
		"node drain -enable -detach " + nodeA:     "",
		"node drain -enable -detach -self":        "",
	} {
		f := guessing(t)
		if strings.HasPrefix(line, "alloc stop -detach 5f3a9c") && !strings.Contains(line, "01") {
			f.answers["GET /v1/allocations"] = []any{[]*structs.AllocListStub{webAlloc(allocA, structs.AllocClientRunning).Stub(false, true)}}
			refused = `allocation "` + allocA + `"`
		}
		got := f.run(t, strings.Fields(line)...)
		if refused == "" {
			if got.code != exitDone || len(f.changes()) == 0 {
				t.Errorf("%s: exit code %d, changed %q, stderr %q", line, got.code, f.changes(), got.err)
			}
			continue
		}
		if got.code != exitFailed || len(f.changes()) > 0 || !strings.Contains(got.err, refused) {
			t.Errorf("%s: exit code %d, changed %q, stderr %q, want %q in it", line, got.code, f.changes(), got.err, refused)
		}
	}
}

// terminal is both ends of a terminal: what is written to the first is typed at the second.
func terminal() (keys, screen *os.File, err error) {
	keys, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		_ = keys.Close()
	}
	return keys, screen, err
}

// at runs a command line at a terminal at which answer is typed, and then the end of the input.
func (f *fake) at(t *testing.T, answer, line string) result {
	t.Helper()
	keys, screen, err := terminal()
	if err != nil {
		t.Fatalf("a terminal is needed: %v", err)
	}
	defer keys.Close()   //nolint:errcheck // it holds nothing
	defer screen.Close() //nolint:errcheck // it holds nothing
	if _, err := keys.WriteString(answer + "\n\x04\x04"); err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(line)
	name, rest := strings.Join(words[:2], " "), append([]string{"-address", f.URL}, words[2:]...)
	var out, errOut bytes.Buffer
	r := &runner{
		name: name, spec: specs()[name], in: screen, out: &out, err: &errOut, ctx: t.Context(), now: func() time.Time { return present },
	}
	code := r.Run(rest)
	return result{code, out.String(), errOut.String()}
}

func TestWhatIsNamedByAPrefixIsRequestedAbout(t *testing.T) {
	for line, question := range map[string]string{
		"job stop -detach webh":                    `Stop job "webhook"? [y/N] `,
		"alloc stop -detach 5f3a9c01":              "",
		"job stop -detach webhook":                 "",
		"job stop -detach webh web":                "Stop 2 jobs? [y/N] ",
		"eval delete " + evalB[:14]:                `Delete evaluation "` + evalB + `"? [y/N] `,
		"node drain -disable " + nodeA[:14]:        `End the drain of node "gpu-1" (` + nodeA[:18] + `)? [y/N] `,
		"node drain -enable -detach " + nodeA:      `Drain node "gpu-1" (` + nodeA[:18] + `)? [y/N] `,
		"job stop -detach -yes webh":               "",
		"node drain -disable " + nodeA:             "",
		"node drain -enable -detach -yes " + nodeA: "",
	} {
		for answer, agreed := range map[string]bool{"y": true, "": false, "n": false, "yes": true} {
			f := guessing(t)
			got := f.at(t, answer, line)
			if did := len(f.changes()) > 0; did != (agreed || question == "") || did != (got.code == exitDone) {
				t.Errorf("%s, answer %q: exit code %d, changed %q, stderr %q", line, answer, got.code, f.changes(), got.err)
			}
			if reported := got.out + got.err; !strings.Contains(reported, question) || question == "" && strings.Contains(reported, "[y/N]") {
				t.Errorf("%s: said %q, want %q", line, reported, question)
			}
		}
	}
}

func TestHelpSaysDefaults(t *testing.T) {
	for name, want := range map[string]string{
		"job restart": "(default ask)", "fmt": "(default true)", "monitor": "-log-level", "operator debug": "(default 5m0s)",
	} {
		wants(t, (&runner{name: name, spec: specs()[name]}).Help(), want)
	}
}

func TestNoJobMatches(t *testing.T) {
	f := newFake(t).on("GET /v1/jobs", []*structs.JobListStub{})
	wants(t, f.run(t, "job", "stop", "-yes", "-filter", "ID==none").err, "no job matches -filter")
	wants(t, f.run(t, "job", "stop", "-yes", "-prefix", "-filter", "ID==none", "x").err, "no job has an ID that starts so and matches -filter")
}
