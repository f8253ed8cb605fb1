package command

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

func TestMonitorLog(t *testing.T) {
	frame := func(data string) string {
		raw, err := json.Marshal(structs.StreamFrame{Data: []byte(data)})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	f := cluster(t).on("GET /v1/agent/monitor", "{}"+frame("one\n")+"{}"+frame(hostile+"\n"))
	got := f.run(t, "monitor", "-node-id", "gpu-1", "-log-level", "DEBUG", "-json", "-log-include-location")
	if got.code != exitFailed || !strings.Contains(got.err, "the agent ended the stream") || !strings.HasPrefix(got.out, "one\na\\x1b[31mb\n") || strings.Contains(got.out, "\x1b") {
		t.Errorf("exit code %d, %q, %q", got.code, got.out, got.err)
	}
	requested := f.requested[len(f.requested)-1]
	for _, want := range []string{"node_id=" + nodeA, "log_level=DEBUG", "log_json=true", "log_include_location=true"} {
		if !strings.Contains(requested, want) {
			t.Errorf("asked %s, which lacks %s", requested, want)
		}
	}
	if got := f.run(t, "monitor", "-server-id", "leader"); !strings.Contains(f.requested[len(f.requested)-1], "server_id=leader") {
		t.Errorf("asked %s: %s", f.requested[len(f.requested)-1], got.err)
	}
	f.answers["GET /v1/agent/monitor"] = []any{refusal{500, "unknown Nomad server nope"}}
	if got := f.run(t, "monitor", "-server-id", "nope"); got.code != exitFailed || !strings.Contains(got.err, "`nomadish server members` lists the servers") {
		t.Errorf("of a server that is not there: exit code %d, %s", got.code, got.err)
	}
	for line, want := range map[string]string{
		"monitor x": "no arguments", "monitor -node-id a -server-id b": "exclude", "monitor -node-id nobody": "no node is named",
	} {
		if got := f.run(t, strings.Fields(line)...); got.code != exitFailed || !strings.Contains(got.err, want) {
			t.Errorf("%s: exit code %d, %s", line, got.code, got.err)
		}
	}
}

// unpack reads an archive: its files by name.
func unpack(t *testing.T, name string) map[string]string {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // a test
	zip, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for from := tar.NewReader(zip); ; {
		head, err := from.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(head.Name, "/") {
			out[head.Name] = string(raw)
		}
	}
}

func TestOperatorDebug(t *testing.T) {
	t.Chdir(t.TempDir())
	events, err := json.Marshal(structs.Events{Index: 5, Events: []structs.Event{{Topic: "Job", Type: "JobRegistered", Key: "web", Payload: map[string]any{
		"Job": map[string]any{"Env": map[string]string{"PASSWORD": "hunter2"}},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	f := cluster(t).on("GET /v1/agent/monitor", `{"Data":"b25lCg=="}`).on("GET /v1/event/stream", string(events)).
		on("GET /v1/agent/host", map[string]any{"AgentID": "x"}).on("GET /v1/agent/pprof/heap", "heap of it").
		on("GET /v1/agent/pprof/goroutine", "all of them").on("GET /v1/agent/pprof/profile", refusal{500, "another one is taken"})
	got := f.run(t, "operator", "debug", "-duration", "2s", "-interval", "2s", "-event-topic", "Job,Node:x", "-event-index", "3", "-max-nodes", "1")
	const name = "nomadish-debug-2026-11-21-120000Z"
	if got.code != exitDone || !strings.Contains(got.out, "Saved "+name+".tar.gz") || !strings.Contains(got.out, "Snapshot 0000") {
		t.Fatalf("exit code %d\n%s\n%s", got.code, got.out, got.err)
	}
	files := unpack(t, name+".tar.gz")
	for file, want := range map[string]string{
		"cluster/agent-self.json": `"node_id"`, "nomad/0000/jobs.json": `"webhook"`, "nomad/0000/nodes.json": nodeA, "nomad/0000/allocations.json": allocA,
		"nomad/0000/evaluations.json": evalA, "cluster/members.json": "s1", "client/" + nodeA + "/monitor.log": "one\n",
		"client/" + nodeA + "/heap_0000.prof": "heap of it", "client/" + nodeA + "/goroutine_0000.txt": "all of them",
		"server/s1.global/agent-host.json": `"AgentID"`, "server/s1.global/monitor.log": "one\n", "cluster/eventstream.json": `"JobRegistered"`,
		"errors.txt": "another one is taken", "summary.json": `"Errors"`,
	} {
		if got := files[name+"/"+file]; !strings.Contains(got, want) {
			t.Errorf("%s lacks %s: %.300q", file, want, got)
		}
	}
	if t.Failed() {
		t.Logf("%q\n%s", slices.Sorted(maps.Keys(files)), files[name+"/errors.txt"])
	}
	for file, text := range files {
		if strings.Contains(text, "hunter2") {
			t.Errorf("%s has a secret", file)
		}
	}
	if about, err := os.Stat(name + ".tar.gz"); err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("others may read the archive: %v, %v", about, err)
	}
	if requested := strings.Join(f.requested, "\n"); !strings.Contains(requested, "topic=Job&topic=Node%3Ax") || !strings.Contains(requested, "index=3") || strings.Contains(requested, "node_id="+nodeB) {
		t.Errorf("asked %s", requested)
	}
	if got := f.run(t, "operator", "debug", "-duration", "1ms", "-interval", "1ms"); got.code != exitFailed || !strings.Contains(got.err, "there is such a file already") {
		t.Errorf("over an archive: exit code %d, %s", got.code, got.err)
	}
	for line, want := range map[string]string{"-duration 1ms": "Interval = 1ms", "-duration 2ms -interval 1ms": "Interval = 1ms"} { // what is not given fits
		got := f.run(t, append([]string{"operator", "debug", "-output", t.TempDir()}, strings.Fields(line)...)...)
		if got.code != exitDone || !strings.Contains(strings.Join(strings.Fields(got.out), " "), want) {
			t.Errorf("%s: exit code %d, %s %s", line, got.code, got.out, got.err)
		}
	}
	below := filepath.Join(t.TempDir(), "a", "b")
	if got := f.run(t, "operator", "debug", "-duration", "1ms", "-output", below); got.code != exitDone {
		t.Errorf("in a directory that is to be made: exit code %d, %s", got.code, got.err)
	}
	if about, err := os.Stat(filepath.Dir(below)); err != nil || about.Mode().Perm() != 0o700 {
		t.Errorf("others may read what is below -output: %v, %v", about, err)
	}
	// A directory instead; without enable_debug one line for each agent says why there are no profiles.
	f.answers["GET /v1/agent/pprof/goroutine"] = []any{refusal{403, "Permission denied: set enable_debug"}}
	got = f.run(t, "debug", "-duration", "1ms", "-interval", "1ms", "-output", ".", "-server-id", "none", "-node-id", nodeA+",ffff")
	if got.code != exitDone || strings.Count(got.out, "enable_debug") != 1 || !strings.Contains(got.out, "node ffff") {
		t.Errorf("exit code %d: %s %s", got.code, got.out, got.err)
	}
	if raw, err := os.ReadFile(filepath.Join(name, "errors.txt")); err != nil || strings.Contains(string(raw), "heap") {
		t.Errorf("%v: %s", err, raw)
	}
	leftOver, err := filepath.Glob(filepath.Join(os.TempDir(), "nomadish-debug-*", name))
	if err != nil || len(leftOver) > 0 {
		t.Errorf("left over: %v, %v", leftOver, err)
	}
	for line, want := range map[string]string{
		"-duration 0s": "must be above 0", "-duration 25h": "at most", "-interval 6m": "at most -duration", "-pprof-duration 1ms": "must be from 1s", "-max-nodes -1": "negative",
		"-log-level loud": "must be one of", "-interval 0s": "above 0", "x": "no arguments", "-output " + name + ".tar.gz/x": "-output",
	} {
		if got := f.run(t, append([]string{"operator", "debug"}, strings.Fields(line)...)...); got.code != exitFailed || !strings.Contains(got.err, want) {
			t.Errorf("%s: exit code %d, %s", line, got.code, got.err)
		}
	}
	none := t.TempDir()
	if got := newFake(t).run(t, "operator", "debug", "-duration", "1ms", "-output", none); got.code != exitFailed {
		t.Errorf("of an agent that answers nothing: exit code %d: %s", got.code, got.out)
	}
	if left, err := os.ReadDir(none); err != nil || len(left) > 0 {
		t.Errorf("an agent that answers nothing left %v, %v", left, err)
	}
}

// Names of a cluster lead nowhere but into the archive.
func TestFileName(t *testing.T) {
	for name, want := range map[string]string{
		"s1.global": "s1.global", "../../etc/passwd": "_.._etc_passwd", "..": "_", "": "_", "a/b": "a_b", "a\x00\n": "a__", "ä": "_", strings.Repeat("x", 300): strings.Repeat("x", 100),
	} {
		if got := fileName(name); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}

func TestDebugFileIsBounded(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	bounded := &debugFile{file, 5}
	if _, err := io.Copy(bounded, strings.NewReader("1234567")); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("%v", err)
	}
	_ = file.Close()
	if raw, err := os.ReadFile(file.Name()); err != nil || string(raw) != "12345" {
		t.Errorf("%q, %v", raw, err)
	}
}
