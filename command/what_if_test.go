package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/command/examples"
	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/nomadish/snapshot"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// saved writes an archive of a state.
func saved(t *testing.T, raw []byte) string {
	t.Helper()
	var out bytes.Buffer
	meta := &structs.SnapshotMeta{Index: 99, Term: 2, StateBytes: int64(len(raw)), Server: "s1", Region: "global", Version: "1.2", Created: present}
	if err := snapshot.Write(&out, meta, bytes.NewReader(raw)); err != nil {
		t.Fatal(err)
	}
	return file(t, "state.snap", out.String())
}

// busyCluster is an archive of a node that holds one job, and three that wait; the first of them has a start in a time of the tests.
func busyCluster(t *testing.T) string {
	l := testcluster.New(1, state.Options{})
	at := present.UnixNano()
	n := testcluster.Node(nodeA, 1000)
	n.Name = "gpu-1"
	l.Put(t, &structs.NodeRegisterEntry{Node: n, Time: at, EvalSeed: "e"})
	l.Put(t, &structs.SchedulerConfigEntry{Config: structs.DefaultSchedulerConfiguration(), Time: at})
	for i := range 3 {
		j := testcluster.Job(fmt.Sprint("job-", i), structs.JobTypeBatch, 1)
		j.TaskGroups[0].MaxRunDuration = time.Hour
		j.TaskGroups[0].Tasks[0].Resources.CPU = 1000
		l.Put(t, &structs.JobRegisterEntry{Job: j, Eval: structs.NewEval(fmt.Sprint("eval-", i), j, structs.EvalTriggerJobRegister, at), Time: at})
	}
	return saved(t, l.Snapshot(t))
}

// fullWhatIf is a what-if of which every part has something.
func fullWhatIf() *structs.WhatIf {
	at := present.UnixNano()
	future := structs.WhatIfFuture{
		Ended: "it ran out of time", Namespaces: []structs.WhatIfWaits{{Of: "default", Waits: 3, Started: 2, Mean: time.Hour}}, Projects: []structs.WhatIfWaits{{Of: "chip", Waits: 1}},
		Taken:      []structs.WhatIfTaken{{Time: at, Namespace: "team", JobID: "web", Name: "web.g[0]", NodeName: "gpu-1", For: "preempted by other.g[0]"}},
		Displaced:  []structs.WhatIfTaken{{Time: at, Namespace: "team", JobID: "web", Name: "web.g[1]", NodeName: "gpu-2", For: "drained"}},
		Shortfalls: []structs.WhatIfShortfall{{Owner: "team", Kind: "nvidia/gpu/H100", Level: "node", Cells: 1, Time: at}},
		Workflows:  []structs.WhatIfWorkflow{{Namespace: "default", ID: "chip", Run: 1, State: structs.WorkflowRunning, Start: at, Stages: []structs.WhatIfStage{{Name: "synth", Start: at}}}},
	}
	return &structs.WhatIf{
		Index: 7, Time: at, NoReservations: true, Until: present.Add(time.Hour).UnixNano(), Changes: []structs.WhatIfApplied{{Text: "lose:gpu-1", Time: at, Warnings: "take care"}},
		Groups: []*structs.WhatIfGroup{{
			Namespace: "team", JobID: "web", Group: "g", Verdict: structs.WhatIfLater, Shift: time.Minute,
			Before: &structs.WhatIfStart{Waits: 2, All: at}, After: &structs.WhatIfStart{Waits: 2, All: present.Add(time.Minute).UnixNano()},
		}},
		Before: future, After: future,
	}
}

// TestWhatIfOfSnapshot: without a cluster, on a saved state.
func TestWhatIfOfSnapshot(t *testing.T) {
	var f *fake
	path := busyCluster(t)
	page := filepath.Join(t.TempDir(), "page.html")
	got := f.run(t, "what-if", "-snapshot", path, "-report", page, "add-nodes:1:like=gpu-1", "lose:gpu-1-new-1:after=90m")
	if got.code != exitDone || got.err != "" {
		t.Fatalf("%d %s%s", got.code, got.out, got.err)
	}
	wants(t, got.out, "add-nodes:1:like=gpu-1\n", "lose:gpu-1-new-1:after=90m at ", "Starts  earlier 2  same 1", "job-1  g      1", "60 min earlier",
		"Figure", "CPU in use, mean", "Wait of namespace default, mean (max)", "The plots are in "+page)
	html, err := os.ReadFile(page)
	if err != nil || !bytes.Contains(html, []byte("<svg")) || !bytes.Contains(html, []byte("job-2")) {
		t.Errorf("%v: %.300s", err, html)
	}
	got = f.run(t, "what-if", "-snapshot", path, "-json", "config:preemption=true", "job:"+file(t, "a.nomad.hcl", examples.Batch))
	var w structs.WhatIf
	if err := json.Unmarshal([]byte(got.out), &w); err != nil || len(w.Changes) != 2 || w.Time != present.UnixNano() {
		t.Errorf("%v: %d %s%s", err, got.code, got.out, got.err)
	}
	again := f.run(t, "what-if", "-snapshot", path, "-json", "config:preemption=true", "job:"+file(t, "a.nomad.hcl", examples.Batch))
	if cut := strings.Index(again.out, `"Groups"`); again.out[cut:] != got.out[strings.Index(got.out, `"Groups"`):] {
		t.Error("the same what-if prints something else")
	}
}

// TestWhatIfRefused: what is wrong with a change, a file or a snapshot is stated in clear words.
func TestWhatIfRefused(t *testing.T) {
	var newer bytes.Buffer
	newer.WriteString("nomadish-snapshot\n")
	if err := codec.WriteFrame(&newer, &fsm.Header{Version: 2, Index: 1}); err != nil {
		t.Fatal(err)
	}
	good := busyCluster(t)
	badJob := file(t, "bad.nomad.hcl", strings.Replace(examples.Batch, "group \"", "node_pool = \"nowhere\"\n\n  group \"", 1))
	f := func(want string, args ...string) {
		t.Helper()
		got := (*fake)(nil).run(t, append([]string{"what-if"}, args...)...)
		if got.code != exitFailed || got.out != "" || !strings.Contains(got.err, want) {
			t.Errorf("%q: %d %s%s, not %q", args, got.code, got.out, got.err, want)
		}
	}
	f("at least one change is needed")
	f("the snapshot's format is 2, and this version reads up to 1: a newer version wrote it", "-snapshot", saved(t, newer.Bytes()), "lose:gpu-1")
	f("this is no archive of a cluster's state", "-snapshot", badJob, "lose:gpu-1")
	f("no such file", "-snapshot", "nowhere.snap", "lose:gpu-1")
	f("horizon 2400h0m0s: must be more than 0 and at most 2160h0m0s", "-snapshot", good, "-horizon", "2400h", "lose:gpu-1")
	f(`node "gpu-9": not found`, "-snapshot", good, "lose:gpu-9")
	f("nowhere", "-snapshot", good, "job:"+badJob)
	f(`there is no change "destroy"; kinds are job, vc,`, "-snapshot", good, "destroy:gpu-1")
	f(`"gpu-1": a change is written as KIND:WHAT`, "-snapshot", good, "gpu-1")
	f("no such file", "-snapshot", good, "vc:nowhere.hcl")
	f("one of like=NODE and shape=FILE is needed", "-snapshot", good, "add-nodes:2")
	f("how many nodes", "-snapshot", good, "add-nodes:some:like=gpu-1")
	f(`deadline "soon": write a duration`, "-snapshot", good, "drain:gpu-1:deadline=soon")
	f("force and deadline exclude each other", "-snapshot", good, "drain:gpu-1:deadline=1h:force=true")
	f(`ignore-system "perhaps": write true or false`, "-snapshot", good, "drain:gpu-1:ignore-system=perhaps")
	f("after and at exclude each other", "-snapshot", good, "lose:gpu-1:after=1h:at=12:00")
	f("at=noon: write a time of the day as 15:04", "-snapshot", good, "lose:gpu-1:at=noon")
	f("there is no option \"bogus\"; a change of kind drain may end with after, at, deadline, force, ignore-system", "-snapshot", good, "drain:gpu-1:bogus=1:after=1m")
	f("after=soon: write a duration, such as 90m or 2h", "-snapshot", good, "lose:gpu-1:after=soon")
	f("cannot be \"maybe\" (`nomadish", "-snapshot", good, "config:preemption=maybe")
	f("a job lives in one namespace", "-snapshot", good, "-namespace", "*", "job:"+file(t, "b.nomad.hcl", examples.Batch))
	f("is before the what-if begins", "-snapshot", good, "lose:gpu-1:at=2020-01-01T00:00:00Z")
	f(`there is no option "speed" of the scheduler's configuration`, "-snapshot", good, "config:speed=high")
	f("write ranges of priorities", "-snapshot", good, "config:bands=high,low")
	f("write config:OPTION=VALUE", "-snapshot", good, "config:bands")
}

// TestWhatIfOfOthers: the short forms of other commands send a what-if, and nothing that changes anything.
func TestWhatIfOfOthers(t *testing.T) {
	answer := &structs.WhatIf{Index: 7, Time: present.UnixNano(), Until: present.Add(time.Hour).UnixNano(), Groups: []*structs.WhatIfGroup{{
		Namespace: "default", JobID: "web", Group: "g", Verdict: structs.WhatIfNew, After: &structs.WhatIfStart{Waits: 2, All: present.UnixNano()},
	}}}
	config := structs.DefaultSchedulerConfiguration()
	for line, sent := range map[string]string{
		"vc apply -what-if VC":                                               `"VirtualCluster":{`,
		"project apply -what-if PROJECT":                                     `"Project":{`,
		"workflow run -what-if WORKFLOW":                                     `"Workflow":{`,
		"job run -what-if JOB":                                               `"Job":{`,
		"node drain -enable -what-if " + nodeA:                               `"Drain":{"Node":"` + nodeA + `","Deadline":3600000000000`,
		"operator scheduler set-config -what-if -scheduler-algorithm spread": `"SchedulerAlgorithm":"spread"`,
		"what-if lose:gpu-1:after=1h":                                        `{"Text":"lose:gpu-1:after=1h","After":3600000000000,"Lose":"gpu-1"}`,
	} {
		f := newFake(t).on("PUT /v1/what-if", answer).on("GET /v1/operator/scheduler/configuration", &structs.SchedulerConfigReply{SchedulerConfig: &config})
		f.on("GET /v1/nodes", []*structs.NodeListStub{{ID: nodeA, Name: "gpu-1"}}).on("GET /v1/node/"+nodeA, &structs.Node{ID: nodeA, Name: "gpu-1"})
		line = strings.NewReplacer("VC", file(t, "vc.hcl", examples.VirtualCluster), "PROJECT", file(t, "p.hcl", examples.Project),
			"WORKFLOW", file(t, "w.nomad.hcl", examples.Workflow), "JOB", file(t, "j.nomad.hcl", examples.Batch)).Replace(line)
		got := f.run(t, strings.Fields(line)...)
		if got.code != exitDone || !strings.Contains(got.out, "Starts  new 1") {
			t.Errorf("%s: %d %s%s", line, got.code, got.out, got.err)
		}
		writes := slices.DeleteFunc(slices.Clone(f.requested), func(r string) bool { return strings.HasPrefix(r, "GET ") })
		if len(writes) != 1 || !strings.HasPrefix(writes[0], "PUT /v1/what-if") || !strings.Contains(strings.Join(f.bodies, ""), sent) {
			t.Errorf("%s: sent %q: %.600s", line, writes, strings.Join(f.bodies, ""))
		}
	}
	drained := func(want, sent string, args ...string) {
		t.Helper()
		f := newFake(t).on("PUT /v1/what-if", answer).on("GET /v1/nodes", []*structs.NodeListStub{{ID: nodeA, Name: "gpu-1"}}).on("GET /v1/node/"+nodeA, &structs.Node{ID: nodeA, Name: "gpu-1"})
		got := f.run(t, args...)
		if body := strings.Join(f.bodies, ""); got.code != exitDone || !strings.Contains(body, `"Text":"`+want+`"`) || !strings.Contains(body, sent) {
			t.Errorf("%q: %d %s: %s", args, got.code, got.err, body)
		}
	}
	drain := func(want, sent string, options ...string) {
		t.Helper()
		drained(want, sent, slices.Concat([]string{"node", "drain", "-enable", "-what-if"}, options, []string{"gpu-1"})...)
		drained(want, sent, "what-if", want) // it can be stated so
	}
	drain("drain:gpu-1:deadline=30m", `"Deadline":1800000000000`, "-deadline", "30m")
	drain("drain:gpu-1:deadline=none", `"Deadline":0`, "-no-deadline")
	drain("drain:gpu-1:force=true", `"Deadline":-1`, "-force")
	drain("drain:gpu-1:deadline=1h0m:ignore-system=true", `"IgnoreSystemJobs":true`, "-ignore-system")
	for want, after := range map[string]structs.WhatIfFuture{
		"No instance waits, neither without the changes nor with them.\n": {Mean: structs.WhatIfUsage{CPU: 0.5}},
		"No instance waits but those that leave their nodes.\n":           {Displaced: []structs.WhatIfTaken{{Name: "low.g[0]", For: "drained"}}},
	} {
		f := newFake(t).on("PUT /v1/what-if", &structs.WhatIf{Time: present.UnixNano(), Until: present.UnixNano(), After: after})
		if got := f.run(t, "what-if", "lose:gpu-1"); !strings.Contains(got.out, "\n\n"+want) || strings.Contains(got.out, "Starts") {
			t.Errorf("not %q: %d %s%s", want, got.code, got.out, got.err)
		}
	}
	ended := *answer
	ended.Changes = []structs.WhatIfApplied{{Text: "lose:gpu-1:after=2h", Time: present.Add(2 * time.Hour).UnixNano(), NotMade: true}}
	ended.After = structs.WhatIfFuture{
		Ended: "it ends after 5 log entries", EndedAt: present.Add(time.Minute).UnixNano(), Namespaces: []structs.WhatIfWaits{{Of: "default", Waits: 3}},
		Displaced: []structs.WhatIfTaken{{Namespace: "default", Name: "low.g[0]", Time: present.UnixNano(), For: "drained"}},
	}
	ended.Groups = []*structs.WhatIfGroup{
		{Namespace: "default", JobID: "open", Group: "g", Verdict: structs.WhatIfUnknown, Before: &structs.WhatIfStart{Waits: 1, All: present.Add(time.Hour).UnixNano()}, After: &structs.WhatIfStart{Waits: 1}},
		{Namespace: "default", JobID: "late", Group: "g", Verdict: structs.WhatIfLater, Shift: time.Minute, AtLeast: true, Before: &structs.WhatIfStart{Waits: 1, All: present.UnixNano()}, After: &structs.WhatIfStart{Waits: 1}},
	}
	got := newFake(t).on("PUT /v1/what-if", &ended).run(t, "what-if", "lose:gpu-1:after=2h")
	wants(t, got.out, "not made: the future with the changes ended before", "The future with the changes is not complete: it ends after 5 log entries. What comes after ",
		"Starts  later 1  not known 1", "not known  at least 60 s later", "not known, of 3", "What is in use, or idle, is a part of all that the ready nodes have")
	if strings.Contains(got.out, "never") {
		t.Errorf("never, beyond the end of a future:\n%s", got.out)
	}
	refused := newFake(t).on("PUT /v1/what-if", refusal{403, "Permission denied"})
	if got := refused.run(t, "what-if", "lose:gpu-1"); got.code != exitFailed || !strings.Contains(got.err, "Permission denied") {
		t.Errorf("%d %s%s", got.code, got.out, got.err)
	}
}

// TestWhatIfOutput: the short forms print a what-if as JSON, through a template, and write its page; without -what-if these say nothing and are refused.
func TestWhatIfOutput(t *testing.T) {
	config := structs.DefaultSchedulerConfiguration()
	for line, json := range map[string]string{
		"vc apply VC": "-json-output", "project apply PROJECT": "-json-output", "workflow run WORKFLOW": "-json-output", "job run JOB": "-json-output",
		"node drain -enable " + nodeA: "-json", "operator scheduler set-config -scheduler-algorithm spread": "-json",
	} {
		line = strings.NewReplacer("VC", file(t, "vc.hcl", examples.VirtualCluster), "PROJECT", file(t, "p.hcl", examples.Project),
			"WORKFLOW", file(t, "w.nomad.hcl", examples.Workflow), "JOB", file(t, "j.nomad.hcl", examples.Batch)).Replace(line)
		f := func(options ...string) result {
			t.Helper()
			f := newFake(t).on("PUT /v1/what-if", fullWhatIf()).on("GET /v1/operator/scheduler/configuration", &structs.SchedulerConfigReply{SchedulerConfig: &config})
			f.on("GET /v1/nodes", []*structs.NodeListStub{{ID: nodeA, Name: "gpu-1"}}).on("GET /v1/node/"+nodeA, &structs.Node{ID: nodeA, Name: "gpu-1"})
			words := strings.Fields(line)
			at := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") || strings.ContainsAny(w, "/.") })
			return f.run(t, slices.Insert(words, at, options...)...)
		}
		page := filepath.Join(t.TempDir(), "page.html")
		if got := f("-what-if", json, "-report", page); got.code != exitDone || !strings.HasPrefix(got.out, "{") || !strings.Contains(got.out, `"NoReservations": true`) {
			t.Errorf("%s: %d %s%.300s", line, got.code, got.err, got.out)
		}
		if html, err := os.ReadFile(page); err != nil || !bytes.Contains(html, []byte("lose:gpu-1")) {
			t.Errorf("%s: %v: %.300s", line, err, html)
		}
		if got := f("-what-if", "-t", "{{.Index}}"); got.code != exitDone || got.out != "7\n" {
			t.Errorf("%s: %d %s%.300s", line, got.code, got.err, got.out)
		}
		for _, alone := range [][]string{{json}, {"-t", "{{.Index}}"}, {"-report", page}} {
			if got := f(alone...); got.code != exitFailed || !strings.Contains(got.err, "they go with it only") {
				t.Errorf("%s %q: %d %s%s", line, alone, got.code, got.err, got.out)
			}
		}
	}
}
