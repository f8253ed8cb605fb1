package httpapi

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func TestQueue(t *testing.T) {
	fk := newFake()
	fk.answer[wire.MethodQueue] = structs.QueueReply{
		Entries:   []*structs.QueueEntry{{JobID: "train", Place: 1, State: structs.QueueWaiting, Priority: structs.EffectivePriority{Total: 61, Declared: 60, Aged: 1}}},
		QueryMeta: structs.QueryMeta{Index: 42, KnownLeader: true, NextToken: "next"},
	}
	ts := newTestServer(t, testConfig(fk))
	resp, text := post(t, ts, "GET", "/v1/queue?node_pool=gpu&namespace=*&per_page=3&next_token=b&prefix=a&filter=Missing+%3E+0&index=41&wait=1s&reverse=true", "")
	if resp.StatusCode != 200 || resp.Header.Get("X-Nomad-Index") != "42" || resp.Header.Get("X-Nomad-Nexttoken") != "next" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	args := fk.args[wire.MethodQueue].(*structs.QueueRequest)
	if args.NodePool != "gpu" || args.Namespace != "*" || args.PerPage != 3 || args.NextToken != "b" || args.Prefix != "a" ||
		args.Filter != "Missing > 0" || args.MinQueryIndex != 41 || !args.Reverse {
		t.Errorf("asked %+v", args)
	}
	for _, want := range []string{`"JobID":"train"`, `"Place":1`, `"State":"waiting"`, `"Priority":{"Total":61,"Declared":60,"Aged":1,`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in %s", want, text)
		}
	}
	fk.answer[wire.MethodQueue] = structs.QueueReply{}
	if resp, text := post(t, ts, "GET", "/v1/queue", ""); resp.StatusCode != 200 || strings.TrimSpace(text) != "[]" {
		t.Errorf("an empty queue: %d %s", resp.StatusCode, text)
	}
	if resp, _ := post(t, ts, "PUT", "/v1/queue", ""); resp.StatusCode != 405 {
		t.Errorf("PUT: %d", resp.StatusCode)
	}
	if resp, _ := post(t, ts, "GET", "/v1/queue?per_page=x", ""); resp.StatusCode != 400 {
		t.Errorf("per_page=x: %d", resp.StatusCode)
	}
}
