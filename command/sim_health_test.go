package command

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

func TestSimHealth(t *testing.T) {
	none, found := []*structs.NodeListStub{}, []*structs.NodeListStub{{ID: nodeA, Name: "dgx-0"}}
	f := func(args, wantBody string, wantRequested []string, answers ...any) {
		t.Helper()
		fake := newFake(t).on("GET /v1/nodes", answers...).on("PUT /v1/node/"+nodeA+"/sim-health", &structs.WriteReply{})
		got := fake.run(t, strings.Fields("sim health "+args)...)
		requested := strings.Join(fake.requested, " ")
		for _, want := range wantRequested {
			if !strings.Contains(requested, want) {
				t.Errorf("%q: asked %s, want %s", args, requested, want)
			}
		}
		if wantBody == "" {
			if got.code != exitFailed || got.err == "" || strings.Contains(requested, "PUT") {
				t.Errorf("%q: exit code %d, stderr %q, asked %s", args, got.code, got.err, requested)
			}
			return
		}
		if got.code != exitDone || !strings.Contains(fake.lastBody(), wantBody) {
			t.Errorf("%q: exit code %d, stderr %q, body %s", args, got.code, got.err, fake.lastBody())
		}
	}
	f("dgx-0 bad", `{"Device":"","Healthy":false}`, []string{"dgx-0%22"}, found)
	f("dgx-0 good", `{"Device":"","Healthy":true}`, nil, found)
	f("dgx-0-gpu-3 bad", `{"Device":"dgx-0-gpu-3","Healthy":false}`, []string{"dgx-0-gpu-3%22", "dgx-0%22"}, none, found)
	f("dgx-0-gpu-3-mig-1 good", `{"Device":"dgx-0-gpu-3-mig-1","Healthy":true}`, []string{"dgx-0%22"}, none, found)
	f("x-gpu-y-0-gpu-1 bad", `{"Device":"x-gpu-y-0-gpu-1","Healthy":false}`, []string{"x-gpu-y-0%22"}, none, found)
	f("nobody bad", "", nil, none)
	f("nobody-gpu-1 bad", "", nil, none, none)
	f("two bad", "", nil, []*structs.NodeListStub{{ID: nodeA}, {ID: nodeB}})
	f("dgx-0", "", nil, found)
	f("dgx-0 ill", "", nil, found)
	f("dgx-0 bad now", "", nil, found)
}
