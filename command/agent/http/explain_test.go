package httpapi

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func TestJobExplain(t *testing.T) {
	fk := newFake()
	fk.answer[wire.MethodJobExplain] = structs.JobExplainReply{
		Explanation: &structs.JobExplanation{JobID: "a/b", Groups: []*structs.GroupExplanation{{Group: "g", Missing: 2}}},
		QueryMeta:   structs.QueryMeta{Index: 42, KnownLeader: true},
	}
	ts := newTestServer(t, testConfig(fk))
	resp, text := post(t, ts, "GET", "/v1/job/a%2Fb/explain?group=g&remedies=false&namespace=team&index=41&wait=1s", "")
	if resp.StatusCode != 200 || resp.Header.Get("X-Nomad-Index") != "42" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	args := fk.args[wire.MethodJobExplain].(*structs.JobExplainRequest)
	if args.ID != "a/b" || args.Group != "g" || !args.NoRemedies || args.Namespace != "team" || args.MinQueryIndex != 41 {
		t.Errorf("asked %+v", args)
	}
	for _, want := range []string{`"JobID":"a/b"`, `"Missing":2`, `"Reasons":[]`, `"Smallest":[]`, `"Waits":[]`, `"On":[]`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in %s", want, text)
		}
	}
	fk.answer[wire.MethodJobExplain] = structs.JobExplainReply{Near: []string{"web"}}
	if resp, text := post(t, ts, "GET", "/v1/job/wed/explain", ""); resp.StatusCode != 404 || !strings.Contains(text, "did you mean web") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	fk.answer[wire.MethodJobExplain] = structs.JobExplainReply{}
	if resp, text := post(t, ts, "GET", "/v1/job/x/explain", ""); resp.StatusCode != 404 || !strings.Contains(text, "job not found") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if resp, _ := post(t, ts, "GET", "/v1/job/x/explain?remedies=perhaps", ""); resp.StatusCode != 400 {
		t.Errorf("remedies=perhaps: %d", resp.StatusCode)
	}
	if resp, _ := post(t, ts, "PUT", "/v1/job/x/explain", ""); resp.StatusCode != 405 {
		t.Errorf("PUT: %d", resp.StatusCode)
	}
}

func TestAllocExplain(t *testing.T) {
	fk := newFake()
	fk.answer[wire.MethodAllocExplain] = structs.AllocExplainReply{Explanation: &structs.AllocExplanation{AllocID: "a1", Policy: "binpack"}}
	ts := newTestServer(t, testConfig(fk))
	if resp, text := post(t, ts, "GET", "/v1/allocation/a1/explain", ""); resp.StatusCode != 200 || !strings.Contains(text, `"Policy":"binpack"`) {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if args := fk.args[wire.MethodAllocExplain].(*structs.IDRequest); args.ID != "a1" {
		t.Errorf("asked %+v", args)
	}
	fk.answer[wire.MethodAllocExplain] = structs.AllocExplainReply{}
	if resp, text := post(t, ts, "GET", "/v1/allocation/a2/explain", ""); resp.StatusCode != 404 || !strings.Contains(text, "alloc not found") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}
