package command

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/nomadish/nomadish/command/examples"
	"github.com/nomadish/nomadish/structs"
)

// hostile is what a tenant may put into a name, a description or an event: a colour, a line of its own, the screen's end,
// a reversed direction, a control sequence of one character.
const hostile = "a\x1b[31mb\nforged\t\r\u202ed\x00\u009b2J\u2028\u200b\u2066\u061c\ufeff\U000e0041\u3164\x7f"

// unclean returns what of a text must not reach a terminal: "" if there is nothing.
func unclean(text string) string {
	for i, r := range text {
		// Written apart from the code that escapes: the classes are the ones that terminals act upon or do not show.
		bad := r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) || r == '\u3164' || r == unicode.ReplacementChar
		if r == '\t' {
			bad = false
		}
		if bad {
			return fmt.Sprintf("%U in %q", r, text[max(0, i-40):min(len(text), i+40)])
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "forged") {
			return fmt.Sprintf("a line of the tenant's: %q", line)
		}
	}
	return ""
}

// poison makes every string that is reachable from a value hostile, and puts one where there is none. IDs stay: they are what
// a command asks for. statuses: those stay as well, and types, so that a command takes its usual way.
type poison struct{ statuses bool }

func (p poison) keeps(field, value string) bool {
	if value == "" {
		return false
	}
	if strings.HasSuffix(field, "ID") || strings.HasSuffix(field, "IDs") || field == "Namespace" || field == "Region" {
		return true
	}
	return p.statuses && (strings.HasSuffix(field, "Status") || strings.HasSuffix(field, "Type") || field == "State" || field == "TriggeredBy")
}

// value returns a poisoned copy of v, which stands in a field.
func (p poison) value(v reflect.Value, field string, depth int) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.String:
		if !p.keeps(field, v.String()) {
			out.SetString(v.String() + hostile)
		}
	case reflect.Pointer:
		if v.IsNil() && depth > 6 {
			break
		}
		from := reflect.New(v.Type().Elem())
		if !v.IsNil() {
			from = v
		}
		out.Set(reflect.New(v.Type().Elem()))
		out.Elem().Set(p.value(from.Elem(), field, depth+1))
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && v.Type() != reflect.TypeFor[time.Time]() {
				out.Field(i).Set(p.value(v.Field(i), f.Name, depth+1))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 || v.Len() == 0 && depth > 6 {
			break
		}
		out.Set(reflect.MakeSlice(v.Type(), max(1, v.Len()), max(1, v.Len())))
		for i := range out.Len() {
			from := reflect.Zero(v.Type().Elem())
			if i < v.Len() {
				from = v.Index(i)
			}
			out.Index(i).Set(p.value(from, field, depth+1))
		}
	case reflect.Map:
		out.Set(reflect.MakeMap(v.Type()))
		for _, key := range v.MapKeys() {
			name := key
			if key.Kind() == reflect.String && v.Type().Elem().Kind() == reflect.Pointer {
				name = p.value(key, "", depth+1) // the names of tasks and such; the keys of tags are the program's own
			}
			out.SetMapIndex(name, p.value(v.MapIndex(key), key.String(), depth+1))
		}
		if depth <= 6 && v.Type().Key().Kind() == reflect.String && v.Type().Elem().Kind() != reflect.Interface {
			out.SetMapIndex(p.value(reflect.Zero(v.Type().Key()), "", depth+1), p.value(reflect.Zero(v.Type().Elem()), "", depth+1))
		}
	case reflect.Interface:
		if !v.IsNil() {
			out.Set(p.value(v.Elem(), field, depth+1))
		}
	}
	return out
}

// hostileCluster is a cluster whose every answer is poisoned, the refusals included.
func hostileCluster(t *testing.T, p poison) *fake {
	f := cluster(t).
		on("GET /v1/allocation/"+allocA+"/explain", &structs.AllocExplanation{}).
		on("PUT /v1/jobs", &structs.JobRegisterReply{EvalID: evalA, Warnings: "1 warning:\n  * " + hostile}).
		on("PUT /v1/job/example/plan", &structs.JobPlanReply{Diff: &structs.JobDiff{
			Type: structs.DiffTypeEdited, Fields: []*structs.FieldDiff{{Type: structs.DiffTypeEdited}},
			Objects:    []*structs.ObjectDiff{{Type: structs.DiffTypeAdded, Fields: []*structs.FieldDiff{{Type: structs.DiffTypeAdded}}}},
			TaskGroups: []*structs.TaskGroupDiff{{Type: structs.DiffTypeEdited, Tasks: []*structs.TaskDiff{{Type: structs.DiffTypeDeleted}}}},
		}, FailedTGAllocs: unplaced(webEval(evalA, "")).FailedTGAllocs, Annotations: &structs.PlanAnnotations{}}).
		on("PUT /v1/validate/job", &structs.JobValidateReply{}).
		on("PUT /v1/virtual-cluster/team/points", "").on("PUT /v1/exchange/offer", map[string]string{"ID": ""}).
		on("PUT /v1/workflow/numbers", &structs.WorkflowRunReply{Run: 1, Warnings: hostile}).on("PUT /v1/workflow/chip/retry", &structs.WorkflowRunReply{Run: 2}).
		on("PUT /v1/workflow/numbers/plan", &structs.WorkflowPlan{Stages: []structs.WorkflowPlanStage{{Jobs: []structs.WorkflowPlanJob{{}}}}}).
		on("PUT /v1/project/example", "").on("PUT /v1/flow/example", "").on("PUT /v1/project/chip/calendar", "").
		on("PUT /v1/virtual-cluster/example", "").on("GET /v1/virtual-cluster/example", &structs.VirtualClusterStatus{Pending: &structs.PendingCells{}}).
		on("PUT /v1/job/web/evaluate", &structs.JobRegisterReply{EvalID: evalA}).
		on("DELETE /v1/job/web", &structs.JobRegisterReply{EvalID: evalA}).
		on("PUT /v1/agent/keyring/install", &structs.KeyringReply{NumNodes: 3}).
		on("PUT /v1/agent/join", map[string]any{"num_joined": 0, "error": "no answer"}).
		on("PUT /v1/node/"+nodeA+"/drain", &structs.NodeUpdateReply{}).
		on("PUT /v1/node/"+nodeA+"/eligibility", &structs.NodeUpdateReply{}).
		on("PUT /v1/allocation/"+allocA+"/stop", &structs.AllocStopReply{EvalID: evalA})
	for route, answers := range f.answers {
		for i, a := range answers {
			if _, text := a.(string); !text {
				answers[i] = p.value(reflect.ValueOf(a), "", 0).Interface()
			}
		}
		f.answers[route] = answers
	}
	inner := f.Config.Handler
	f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		_, known := f.answers[r.Method+" "+r.URL.Path]
		f.mu.Unlock()
		if !known {
			http.Error(w, "refused: "+hostile, http.StatusBadRequest)
			return
		}
		inner.ServeHTTP(w, r)
	})
	return f
}

// writes are the commands beside reads that print what the cluster says; "" names those that print nothing of it, with why.
var writes = map[string]string{
	"job run": "-detach JOB", "job plan": "JOB", "job validate": "JOB", "job stop": "-detach web", "job revert": "web 1",
	"job scale": "-detach web front 3", "job eval": "-detach web", "alloc signal": "5f3a9c01", "alloc restart": "5f3a9c01",
	"alloc stop": "-detach 5f3a9c01", "alloc suspend": "-detach 5f3a9c01", "alloc resume": "-detach 5f3a9c01",
	"node drain": "-enable -yes -detach " + nodeA, "node eligibility": "-enable " + nodeA, "server join": "10.0.0.2",
	"server force-leave": "s1", "operator autopilot set-config": "-min-quorum 5", "operator raft remove-peer": "-peer-id s9",
	"operator raft transfer-leadership": "-peer-id s9", "operator scheduler set-config": "-scheduler-algorithm spread",
	"operator gossip keyring install": "b2xkLg==", "operator gossip keyring remove": "b2xkLg==", "operator gossip keyring use": "b2xkLg==",
	"operator snapshot save": "DIR/x.snap", "operator snapshot restore": "testdata/format1.snap", "operator api": "/v1/nowhere",
	"node meta apply": "a=b", "eval delete": evalA,
	"namespace apply": "-description x team", "namespace delete": "team", "vc apply": "-when-free VC", "vc delete": "team", "vc withdraw": allocA,
	"vc points": "team 3", "vc shift": "-level node -from 2026-12-01 -until 2026-12-02 -to 2026-12-03 -until-to 2026-12-04 team",
	"vc offer": "-level node -from 2026-12-01 -until 2026-12-02 team", "vc bid": "-level node -points 3 -from 2026-12-01 -until 2026-12-02 team",
	"project apply": "PROJECT", "project delete": "chip", "flow apply": "FLOW", "flow delete": "asic", "project calendar": "-type batch -slots 3 chip",
	"license apply": "-count 3 vcs", "license delete": "vcs",
	"workflow run": "-detach WORKFLOW", "workflow plan": "WORKFLOW", "workflow pause": "chip", "workflow resume": "chip", "workflow cancel": "chip",
	"workflow retry": "-detach chip", "workflow delete": "chip", "workflow logs": "chip nothing",
	"node pool apply": "POOL", "node pool delete": "gpu",
	"monitor": "-node-id gpu-1", "operator debug": "-duration 1ms -interval 1ms -verbose -output DIR",
	"system gc": "", "check": "-min-peers 9", "job start": "-detach web", "job restart": "-yes -verbose web", "sim health": "n up", "alloc logs": "5f3a9c01 serve",
}

// printsNothing are the commands that print nothing that comes from a cluster.
var printsNothing = map[string]string{
	"agent": "its log is looked at in command/agent", "executor": "as the agent", "job init": "writes a file of our own", "node pool init": "writes a file of our own", "vc init": "writes a file of our own", "project init": "writes a file of our own",
	"workflow init": "writes a file of our own", "workflow validate": "reads a file of the user's own",
	"operator gossip keyring generate": "makes a key", "tls ca create": "makes files", "tls cert create": "makes files",
	"sim nodes": "prints how many nodes registered", "sim run": "prints what it simulated itself", "sim generate": "writes a file of its own", "version": "its own", "tls ca info": "reads a file",
	"tls cert info": "reads a file", "fmt": "prints the names of the user's own files", "config validate": "reads files of the operator's own",
	"operator raft info": "see TestRaftOffline", "operator raft logs": "see TestRaftOffline", "operator raft state": "see TestRaftOffline",
}

// Whatever a tenant or a node put into the cluster's state, no command prints what a terminal obeys, or a line of theirs.
func TestNoCommandPrintsWhatTerminalsObey(t *testing.T) {
	lines := map[string][]string{}
	for _, r := range reads {
		name := ""
		for n := range specs() {
			if strings.HasPrefix(r.line+" ", n+" ") && len(n) > len(name) {
				name = n
			}
		}
		lines[name] = append(lines[name], r.line)
	}
	dir := t.TempDir()
	job := filepath.Join(dir, "a.nomad.hcl")
	if err := os.WriteFile(job, []byte(examples.Service), 0o600); err != nil {
		t.Fatal(err)
	}
	pool := filepath.Join(dir, "pool.nomad.hcl")
	if err := os.WriteFile(pool, []byte(examples.NodePool), 0o600); err != nil {
		t.Fatal(err)
	}
	vc := filepath.Join(dir, "vc.hcl")
	if err := os.WriteFile(vc, []byte(examples.VirtualCluster), 0o600); err != nil {
		t.Fatal(err)
	}
	project, flow := file(t, "project.hcl", examples.Project), file(t, "flow.hcl", "flow \"example\" {\n  steps = [\"a\"]\n}\n")
	workflow := file(t, "workflow.nomad.hcl", examples.Workflow)
	for name, args := range writes {
		lines[name] = append(lines[name], name+" "+strings.NewReplacer("JOB", job, "DIR", dir, "POOL", pool, "VC", vc, "PROJECT", project, "WORKFLOW", workflow, "FLOW", flow).Replace(args))
	}
	lines["alloc status"] = append(lines["alloc status"], "alloc status -verbose 5f3a9c01", "alloc status 9")
	lines["node status"] = append(lines["node status"], "node status -verbose "+nodeA, "node status -stats "+nodeA, "node status -verbose", "node status 0")
	lines["job scaling-events"] = append(lines["job scaling-events"], "job scaling-events -verbose web")
	lines["status"] = append(lines["status"], "status nothing")
	lines["topology"] = append(lines["topology"], "topology -all -verbose")
	lines["job history"] = append(lines["job history"], "job history -p web")
	lines["vc status"] = append(lines["vc status"], "vc status -verbose team", "vc status nothing")
	lines["job inspect"] = append(lines["job inspect"], "job inspect -version 9 web")
	lines["operator metrics"] = append(lines["operator metrics"], "operator metrics -format prometheus")
	for name := range specs() {
		if len(lines[name]) == 0 && aliases[name] == "" && printsNothing[name] == "" {
			t.Errorf("%s: no test looks at what it prints of a cluster: name its arguments in reads or writes", name)
		}
	}
	shown := 0
	for _, p := range []poison{{statuses: true}, {statuses: false}} {
		f := hostileCluster(t, p)
		for _, name := range slices.Sorted(maps.Keys(lines)) {
			for _, line := range lines[name] {
				got := f.run(t, strings.Fields(line)...)
				if strings.Contains(got.out+got.err, "a\\x1b[31mb") {
					shown++
				}
				if what := unclean(got.out); what != "" {
					t.Errorf("%s: stdout has %s", line, what)
				}
				if what := unclean(got.err); what != "" {
					t.Errorf("%s: stderr has %s", line, what)
				}
			}
		}
	}
	if shown < 60 {
		t.Errorf("only %d outputs showed anything of what the cluster was given: the others were refused or hid it", shown)
	}
}

// JSON says the same as ever, in characters that a terminal can print.
func TestJSONIsSafeToPrintAndTheSame(t *testing.T) {
	f := newFake(t).on("GET /v1/nodes", []*structs.NodeListStub{{ID: nodeA, Name: hostile + "ä€😀\\"}})
	got := f.run(t, "node", "status", "-json")
	if what := unclean(got.out); what != "" || got.code != exitDone {
		t.Errorf("exit code %d, stdout has %s", got.code, what)
	}
	var nodes []*structs.NodeListStub
	if err := json.Unmarshal([]byte(got.out), &nodes); err != nil || nodes[0].Name != hostile+"ä€😀\\" {
		t.Errorf("%v: %q", err, got.out)
	}
	got = f.run(t, "node", "status", "-t", "{{range .}}{{.Name}}{{end}}")
	wants(t, got.out, `a\x1b[31mb`, `\u202ed\x00\u009b2J`, "ä€😀\\")
}

// What a program wrote is printed as it is: its colours are its own.
func TestRawOutputStaysRaw(t *testing.T) {
	f := cluster(t).on("GET /v1/raw", hostile)
	if got := f.run(t, "operator", "api", "/v1/raw"); got.out != hostile {
		t.Errorf("operator api printed %q", got.out)
	}
	f.on("GET /v1/client/fs/stat/"+allocB, &structs.AllocFileInfo{Name: "x"}).on("GET /v1/client/fs/cat/"+allocB, hostile)
	if got := f.run(t, "alloc", "fs", "5f3a9c02", "x"); got.out != hostile {
		t.Errorf("alloc fs printed %q, %s", got.out, got.err)
	}
	f.answers["GET /v1/job/web/submission"] = []any{&structs.JobSubmission{Source: hostile}}
	if got := f.run(t, "job", "inspect", "-hcl", "web"); got.out != hostile { // no terminal: the file as it was
		t.Errorf("job inspect -hcl printed %q, %s", got.out, got.err)
	}
}

// Also a command that prints by other means than printf gets nothing to the terminal that is not printable.
func TestEveryCommandWritesThroughTheWall(t *testing.T) {
	var out, errOut strings.Builder
	for _, s := range []spec{
		{local: true, setup: func(*flag.FlagSet) func(context.Context, *env, []string) int {
			return func(_ context.Context, e *env, _ []string) int {
				_, _ = fmt.Fprint(e.out, hostile)
				_, _ = fmt.Fprint(e.err, hostile)
				return exitDone
			}
		}},
		{raw: func(_ context.Context, _ []string, out, err io.Writer) int {
			_, _ = fmt.Fprint(out, hostile)
			_, _ = fmt.Fprint(err, hostile)
			return exitDone
		}},
	} {
		r := &runner{name: "x", spec: s, out: &out, err: &errOut, ctx: t.Context(), now: time.Now}
		if code := r.Run(nil); code != exitDone {
			t.Errorf("exit code %d", code)
		}
	}
	for _, text := range []string{out.String(), errOut.String()} {
		if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' }) || strings.Count(text, `\x1b[31m`) != 2 {
			t.Errorf("printed %q", text)
		}
	}
}
