package command

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

func TestAllocActions(t *testing.T) {
	f := cluster(t).on("PUT /v1/client/allocation/"+allocA+"/signal", "{}").on("PUT /v1/client/allocation/"+allocA+"/restart", "{}").
		on("PUT /v1/allocation/"+allocA+"/stop", &structs.AllocStopReply{EvalID: evalA})
	does := func(path, body string, line string) {
		t.Helper()
		got := f.run(t, strings.Fields("alloc "+line)...)
		if got.code != exitDone {
			t.Fatalf("%s: exit code %d, stderr %q", line, got.code, got.err)
		}
		requested := f.requests("PUT")
		wants(t, requested[len(requested)-1], path)
		wants(t, f.bodies[indexOf(f.requested, requested[len(requested)-1])], body)
	}
	does("/signal", `"Signal":"SIGHUP"`, "signal -s hup 5f3a9c01")
	does("/signal", `"Task":"serve"`, "signal 5f3a9c01 serve")
	does("/restart", `"TaskName":"serve"`, "restart -task serve 5f3a9c01")
	does("/restart", `"AllTasks":true`, "restart -all-tasks 5f3a9c01")
	does("/stop?no_shutdown_delay=true", "", "stop -detach -no-shutdown-delay 5f3a9c01")
	for _, bad := range []string{"signal", "signal a b c", "signal -task x 5f3a9c01 y", "restart -all-tasks 5f3a9c01 serve", "stop", "stop a b", "signal 9999"} {
		if got := f.run(t, strings.Fields("alloc "+bad)...); got.code != exitFailed || got.err == "" {
			t.Errorf("%q: exit code %d, output %q", bad, got.code, got.out)
		}
	}
}

func TestServerActions(t *testing.T) {
	f := cluster(t).on("PUT /v1/agent/join", `{"num_joined": 2}`).on("PUT /v1/agent/force-leave", "")
	does := func(line, out, requests string) {
		t.Helper()
		got := f.run(t, strings.Fields(line)...)
		if got.code != exitDone || got.out != out {
			t.Errorf("%s: exit code %d, output %q, stderr %q", line, got.code, got.out, got.err)
		}
		requested := f.requests("PUT")
		wants(t, requested[len(requested)-1], requests)
	}
	does("server join 10.0.0.2 10.0.0.3:1", "Joined 2 servers successfully\n", "address=10.0.0.2&address=10.0.0.3%3A1")
	does("server join -wan 10.9.0.2", "Joined 2 servers successfully\n", "address=10.9.0.2&wan=true")
	does("server force-leave -prune m1", "", "node=m1&prune=1")
	does("operator autopilot set-config -min-quorum 5 -cleanup-dead-servers=true", "Configuration updated!\n", "cas=8")
	wants(t, f.bodies[len(f.bodies)-1], `"MinQuorum":5`, `"CleanupDeadServers":true`, `"LastContactThreshold":"1s"`)
	for _, bad := range []string{"server join", "server force-leave", "server force-leave a b", "server force-leave nobody", "operator autopilot set-config", "operator autopilot set-config x"} {
		if got := f.run(t, strings.Fields(bad)...); got.code != exitFailed || got.err == "" {
			t.Errorf("%q: exit code %d, output %q", bad, got.code, got.out)
		}
	}
	f = newFake(t).on("PUT /v1/agent/join", `{"num_joined": 0, "error": "nobody answers"}`)
	if got := f.run(t, "server", "join", "10.0.0.2"); got.code != exitFailed || !strings.Contains(got.err, "nobody answers") {
		t.Errorf("not joined: exit code %d, stderr %q", got.code, got.err)
	}
}

// indexOf finds the last one.
func indexOf(all []string, one string) int {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i] == one {
			return i
		}
	}
	return -1
}

func TestAllocStopFollows(t *testing.T) {
	f := cluster(t).on("PUT /v1/allocation/"+allocA+"/stop", &structs.AllocStopReply{EvalID: evalA})
	f.answers["GET /v1/evaluation/"+evalA] = []any{unplaced(webEval(evalA, structs.EvalStatusComplete))}
	f.answers["GET /v1/evaluation/"+evalA+"/allocations"] = []any{[]*structs.AllocListStub{}}
	if got := f.run(t, "alloc", "stop", "5f3a9c01"); got.code != exitIncomplete {
		t.Errorf("exit code %d, want %d: %s", got.code, exitIncomplete, got.err)
	}
}

// frames are what a server sends of a file.
func frames(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		raw, _ := json.Marshal(structs.StreamFrame{Data: []byte(p)})
		b.Write(raw)
	}
	return b.String() + "{}"
}

func TestAllocLogs(t *testing.T) {
	f := cluster(t).on("GET /v1/client/fs/logs/"+allocA, frames("one\ntw", "o\nthree\n"))
	logs := func(want, requested string, line string) {
		t.Helper()
		got := f.run(t, strings.Fields("alloc logs "+line)...)
		if got.code != exitDone || got.out != want {
			t.Errorf("%s: exit code %d, output %q, stderr %q", line, got.code, got.out, got.err)
		}
		all := f.requests("GET")
		wants(t, all[len(all)-1], strings.Fields(requested)...)
	}
	all := "one\ntwo\nthree\n"
	logs(all, "task=serve type=stdout origin=start follow=false", "5f3a9c01")
	logs(all, "type=stderr", "-stderr 5f3a9c01 serve")
	logs(all, "origin=end offset=9", "-c 9 5f3a9c01") // the server cuts; the fake does not
	logs("two\nthree\n", "origin=end follow=false", "-n 2 5f3a9c01")
	logs(all, "origin=start follow=true", "-f 5f3a9c01")
	logs(all, "origin=end offset=6 follow=true", "-f -n 1 5f3a9c01") // goes on after the last line
	logs(all, "/v1/client/fs/logs/"+allocA, "-job web")
	logs(all, "task=serve", "-job -group front -task serve web")
	for _, bad := range []string{
		"", "-n 1 -c 1 5f3a9c01", "-n -1 5f3a9c01", "-stderr -stdout 5f3a9c01", "-task a 5f3a9c01 b", "-job -group nope web", "-job a b c", "5f3a9c02",
	} {
		if got := f.run(t, strings.Fields("alloc logs "+bad)...); got.code != exitFailed || got.err == "" || got.out != "" {
			t.Errorf("%q: exit code %d, output %q", bad, got.code, got.out)
		}
	}
}

// Whose log it is stands beside the log, where a job has several instances.
func TestAllocLogsOfAJobSaysWhichIsTaken(t *testing.T) {
	f := cluster(t).on("GET /v1/client/fs/logs/"+allocA, frames("one\n")).on("GET /v1/job/one", &structs.Job{ID: "one"}).
		on("GET /v1/job/one/allocations", after(allocA, structs.AllocClientFailed))
	says := func(want, job string) {
		t.Helper()
		if got := f.run(t, "logs", "-job", job); got.out != "one\n" || got.err != want {
			t.Errorf("output %q, stderr %q, want %q", got.out, got.err, want)
		}
	}
	says("Of 2 allocations, 1 of them running, the newest that runs is taken: "+
		"web.front[0] \"5f3a9c01\" on node \"gpu-1\" (`nomadish job allocs web` lists all)\n", "web")
	says("", "one")
}

func TestAllocLogsOfManyTasksRequestsWhich(t *testing.T) {
	a := webAlloc(allocA, structs.AllocClientRunning)
	a.Job.TaskGroups[0].Tasks = append(a.Job.TaskGroups[0].Tasks, &structs.Task{Name: "side"})
	f := newFake(t).on("GET /v1/allocations", []*structs.AllocListStub{a.Stub(false, false)}).on("GET /v1/allocation/"+allocA, a)
	if got := f.run(t, "logs", "5f3a9c01"); got.code != exitFailed || !strings.Contains(got.err, "serve, side: name one") {
		t.Errorf("exit code %d, stderr %q", got.code, got.err)
	}
}

func TestBrokenLogIsAnError(t *testing.T) {
	f := cluster(t).on("GET /v1/client/fs/logs/"+allocA, `{"Data":"b25l"}{"Data":`)
	if got := f.run(t, "logs", "5f3a9c01"); got.code != exitFailed || got.out != "one" || !strings.Contains(got.err, "broke off") {
		t.Errorf("exit code %d, output %q, stderr %q", got.code, got.out, got.err)
	}
	for _, why := range []string{
		`no path to node "gpu-1"`, `"gpu-1" is gone`, "5f3a9c01: gone", "42", "true", "null is no node", "[::1]:4647 is gone",
		"node gpu-1" + strings.Repeat(": passed on", 300),
	} {
		f = cluster(t).on("GET /v1/client/fs/logs/"+allocA, `{"Data":"b25l"}`+why)
		if got := f.run(t, "logs", "5f3a9c01"); got.code != exitFailed || got.out != "one" || got.err != "the stream broke off: "+why+"\n" {
			t.Errorf("of an agent that says why: exit code %d, output %q, stderr %q, want %q", got.code, got.out, got.err, why)
		}
	}
}

func TestAllocFSPrintsFiles(t *testing.T) {
	f := cluster(t).on("GET /v1/client/fs/cat/"+allocA, "whole\nfile\n").on("GET /v1/client/fs/stream/"+allocA, frames("whole\nfile\n"))
	f.answers["GET /v1/client/fs/stat/"+allocA] = []any{&structs.AllocFileInfo{Name: "x", Size: 11, FileMode: "-rw-r--r--", ModTime: present}}
	fs := func(want, line string) {
		t.Helper()
		if got := f.run(t, strings.Fields("alloc fs "+line)...); got.code != exitDone || got.out != want {
			t.Errorf("%s: exit code %d, output %q, stderr %q", line, got.code, got.out, got.err)
		}
	}
	fs("whole\nfile\n", "5f3a9c01 a/x")
	fs("whole\nfile\n", "-job web a/x")
	fs("whole\nfile\n", "-f 5f3a9c01 a/x")
	fs("file\n", "-n 1 5f3a9c01 a/x")
	wants(t, f.run(t, "fs", "-stat", "-H", "5f3a9c01", "a/x").out, "11", "-rw-r--r--")
	wants(t, f.requests("GET")[1], "path=a%2Fx")
	if got := f.run(t, "fs"); got.code != exitFailed {
		t.Errorf("of nothing: exit code %d", got.code)
	}
}

func TestTailIsTheEndOfTheFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		lines := rapid.IntRange(0, 60).Draw(t, "lines")
		n := rapid.Int64Range(1, 70).Draw(t, "n")
		closed := rapid.Bool().Draw(t, "closed")
		r := rand.New(rand.NewPCG(seed, 1))
		var all []string
		for i := range lines {
			all = append(all, fmt.Sprint(i)+strings.Repeat("x", r.IntN(400)))
		}
		text := strings.Join(all, "\n")
		if closed && text != "" {
			text += "\n"
		}
		want := strings.Join(all[max(0, len(all)-int(n)):], "\n")
		if closed && want != "" {
			want += "\n"
		}
		var got strings.Builder
		o := tailOptions{lines: n}
		err := o.copyTail(&got, func(origin string, offset int64, _ bool, w io.Writer) error {
			if origin != "end" {
				return fmt.Errorf("origin %q", origin)
			}
			_, err := io.WriteString(w, text[max(0, len(text)-int(offset)):])
			return err
		})
		if err != nil || got.String() != want {
			t.Fatalf("last %d of %q: %q, want %q, error %v", n, text, got.String(), want, err)
		}
	})
}

func TestNodeEligibility(t *testing.T) {
	f := cluster(t).on("PUT /v1/node/"+nodeA+"/eligibility", &structs.NodeUpdateReply{})
	if got := f.run(t, "node", "eligibility", "-disable", "gpu-1"); got.code != exitDone || !strings.Contains(got.out, "not eligible") {
		t.Errorf("exit code %d, output %q, stderr %q", got.code, got.out, got.err)
	}
	wants(t, f.lastBody(), `"Eligibility":"ineligible"`)
	f.run(t, "node", "eligibility", "-enable", "-self")
	wants(t, f.lastBody(), `"Eligibility":"eligible"`)
	for _, bad := range []string{"gpu-1", "-enable -disable gpu-1", "-enable", "-enable gpu-1 gpu-2"} {
		if got := f.run(t, strings.Fields("node eligibility "+bad)...); got.code != exitFailed || got.err == "" {
			t.Errorf("%q: exit code %d", bad, got.code)
		}
	}
}

func TestNodeDrainRequests(t *testing.T) {
	f := cluster(t).on("PUT /v1/node/"+nodeA+"/drain", &structs.NodeUpdateReply{})
	requests := func(line string, want string) {
		t.Helper()
		if got := f.run(t, strings.Fields("node drain "+line+" -detach gpu-1")...); got.code != exitDone {
			t.Fatalf("%s: exit code %d, stderr %q", line, got.code, got.err)
		}
		wants(t, f.lastBody(), want)
	}
	requests("-enable", fmt.Sprintf(`"Deadline":%d`, time.Hour))
	requests("-enable -deadline 30m -ignore-system", fmt.Sprintf(`"Deadline":%d,"IgnoreSystemJobs":true`, 30*time.Minute))
	requests("-enable -force -yes", `"Deadline":-1`)
	requests("-enable -no-deadline", `"Deadline":0`)
	requests("-disable", `"DrainSpec":null,"MarkEligible":true`)
	requests("-disable -keep-ineligible", `"DrainSpec":null,"MarkEligible":false`)
	sent := len(f.requests("PUT"))
	for _, bad := range []string{
		"gpu-1", "-enable -disable gpu-1", "-enable -force -no-deadline gpu-1", "-enable -force -deadline 1h gpu-1",
		"-disable -force gpu-1", "-enable -keep-ineligible gpu-1", "-enable -deadline -1h gpu-1", "-enable", "-enable -detach -monitor gpu-1",
		"-enable -self gpu-1", "-disable -monitor gpu-1",
	} {
		if got := f.run(t, strings.Fields("node drain "+bad)...); got.code != exitFailed || got.err == "" {
			t.Errorf("%q: exit code %d", bad, got.code)
		}
	}
	if len(f.requests("PUT")) != sent {
		t.Errorf("a refused command line asked %q", f.requests("PUT")[sent:])
	}
}

func TestNodeDrainFollows(t *testing.T) {
	draining, done := gpuNode(nodeA, "gpu-1"), gpuNode(nodeA, "gpu-1")
	draining.DrainStrategy = &structs.DrainStrategy{}
	done.LastDrain = &structs.DrainMetadata{Status: "complete"}
	alloc := func(desired, status string, migrate bool) []*structs.Allocation {
		a := webAlloc(allocA, status)
		a.DesiredStatus, a.DesiredTransition.Migrate = desired, &migrate
		ended := webAlloc(allocB, structs.AllocClientComplete) // long before
		return []*structs.Allocation{a, ended}
	}
	f := newFake(t).on("GET /v1/nodes", []*structs.NodeListStub{nodeStub(draining)}).
		on("GET /v1/node/"+nodeA, draining, draining, draining, draining, done).
		on("GET /v1/node/"+nodeA+"/allocations", alloc("run", "running", false), alloc("run", "running", true),
			alloc("stop", "running", true), alloc("stop", "complete", true)).
		on("PUT /v1/node/"+nodeA+"/drain", &structs.NodeUpdateReply{})
	got := f.run(t, "node", "drain", "-enable", "-yes", "gpu-1")
	if got.code != exitDone {
		t.Fatalf("exit code %d, stderr %q", got.code, got.err)
	}
	wants(t, got.out, "drain strategy set", `Alloc "5f3a9c01" (web.front[0]) running -> marked for migration`,
		"marked for migration -> draining", "draining -> complete", "Drain complete")
	if strings.Contains(got.out, "5f3a9c02") {
		t.Errorf("what ended before is shown:\n%s", got.out)
	}
	done.LastDrain.Status = "canceled"
	f.answers["GET /v1/node/"+nodeA] = []any{draining, done}
	if got := f.run(t, "node", "drain", "-monitor", "gpu-1"); got.code != exitFailed || !strings.Contains(got.out, "canceled") {
		t.Errorf("canceled: exit code %d, output %q", got.code, got.out)
	}
	if got := f.run(t, "node", "drain", "-monitor", "gpu-1"); got.code != exitDone || !strings.Contains(got.out, "is not draining") {
		t.Errorf("none: exit code %d, output %q", got.code, got.out)
	}
}

func TestSystemCommands(t *testing.T) {
	f := newFake(t).on("PUT /v1/system/gc", "").on("PUT /v1/system/reconcile/summaries", &structs.ReconcileReply{})
	if got := f.run(t, "system", "gc"); got.code != exitDone || got.out != "Garbage collected\n" {
		t.Errorf("exit code %d, output %q, stderr %q", got.code, got.out, got.err)
	}
	if got := f.run(t, "system", "reconcile"); got.code != exitDone || got.out != "Nothing was wrong\n" {
		t.Errorf("exit code %d, output %q, stderr %q", got.code, got.out, got.err)
	}
}

func TestSimNodesRefuses(t *testing.T) {
	f := newFake(t).on("GET /v1/status/leader", `""`)
	refused := func(want, line string) {
		t.Helper()
		got := f.run(t, strings.Fields("sim nodes "+line)...)
		if got.code != exitFailed {
			t.Errorf("%q: exit code %d", line, got.code)
		}
		wants(t, got.err, want)
	}
	refused("knows no leader", "")
	refused("a number from 1", "-count -3")
	refused("no arguments", "x")
	refused("shape file", "-server 127.0.0.1:1 -shape /nonexistent/x.hcl")
	refused("one process takes", "-server 127.0.0.1:1 -count 1000000")
}

func TestSimProgress(t *testing.T) {
	var out strings.Builder
	p := &simProgress{out: &out, live: ui.NewLive(&out)}
	for n := 0; n <= 50; n++ {
		p.report(n, 50)
	}
	p.report(49, 50) // one lost its connection: not news
	p.report(50, 50)
	text := out.String()
	if strings.Count(text, "\n") != 11 || !strings.HasSuffix(text, "50 of 50 nodes registered\nRunning until interrupted\n") {
		t.Errorf("printed %q", text)
	}
}
