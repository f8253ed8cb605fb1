package httpapi

import (
	"testing"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// What the path and the parameters of an edit say reaches the servers.
func TestVirtualClusterEdit(t *testing.T) {
	fk := newFake()
	ts := newTestServer(t, testConfig(fk))
	f := func(query, body string, whenFree, cas bool, index uint64) {
		t.Helper()
		if resp, text := post(t, ts, "PUT", "/v1/virtual-cluster/team"+query, body); resp.StatusCode != 200 {
			t.Fatalf("%d %s", resp.StatusCode, text)
		}
		fk.mu.Lock()
		defer fk.mu.Unlock()
		args := fk.args[wire.MethodVirtualClusterUpsert].(*structs.VirtualClusterUpsertRequest)
		if args.VirtualCluster.Name != "team" || args.WhenFree != whenFree || args.CAS != cas || args.CheckIndex != index || args.Region != "global" {
			t.Errorf("%s %s: %+v of %+v", query, body, args, args.VirtualCluster)
		}
	}
	f("", `{}`, false, false, 0)
	f("?when_free", `{"Name":"team"}`, true, false, 0)
	f("?when_free=false&cas=0", `{}`, false, true, 0)
	f("?when_free=1&cas=7", `{}`, true, true, 7)
	f("", `{"Windows":[{"From":"2026-12-01T08:00:00+01:00","To":"2026-12-02T00:00:00Z","Cells":[{"Level":"node","Count":1}]}]}`, false, false, 0)
	args := fk.args[wire.MethodVirtualClusterUpsert].(*structs.VirtualClusterUpsertRequest)
	if w := args.VirtualCluster.Windows[0]; w.To.Sub(w.From).Hours() != 17 || w.Cells[0].Count != 1 {
		t.Errorf("%+v", w)
	}
}

// A client gets lists where there are none of something, and null nowhere.
func TestVirtualClusterListsAreLists(t *testing.T) {
	fk := newFake()
	ts := newTestServer(t, testConfig(fk))
	fk.answer[wire.MethodVirtualClusterGet] = structs.VirtualClusterReply{VirtualCluster: &structs.VirtualClusterStatus{Name: "team"}}
	fk.answer[wire.MethodVirtualClusterList] = structs.VirtualClusterListReply{
		VirtualClusters: []*structs.VirtualClusterStatus{{Name: "team"}}, QueryMeta: structs.QueryMeta{Index: 7},
	}
	const one = `{"Name":"team","OverLimit":"","Points":0,"Cells":[],"GuaranteedGPUs":0,"OpportunisticGPUs":0,"Windows":[],"CreateIndex":0,"ModifyIndex":0}`
	if _, text := post(t, ts, "GET", "/v1/virtual-cluster/team", ""); text != one {
		t.Error(text)
	}
	resp, text := post(t, ts, "GET", "/v1/virtual-clusters?index=5&wait=1s", "")
	if text != "["+one+"]" || resp.Header.Get("X-Nomad-Index") != "7" {
		t.Errorf("index %s: %s", resp.Header.Get("X-Nomad-Index"), text)
	}
	fk.mu.Lock()
	args := fk.args[wire.MethodVirtualClusterList].(*structs.ListRequest)
	fk.mu.Unlock()
	if args.MinQueryIndex != 5 {
		t.Errorf("a blocking query waits beyond index %d", args.MinQueryIndex)
	}
	fk.answer[wire.MethodVirtualClusterList] = structs.VirtualClusterListReply{}
	if _, text := post(t, ts, "GET", "/v1/virtual-clusters", ""); text != "[]" {
		t.Error(text)
	}
}

// TestJobOpportunistic: the query says it, or else the body.
func TestJobOpportunistic(t *testing.T) {
	fk := newFake()
	ts := newTestServer(t, testConfig(fk))
	f := func(query, body string, want bool) {
		t.Helper()
		if resp, text := post(t, ts, "PUT", "/v1/jobs?"+query, body); resp.StatusCode != 200 {
			t.Fatalf("%d %s", resp.StatusCode, text)
		}
		fk.mu.Lock()
		defer fk.mu.Unlock()
		if args := fk.args[wire.MethodJobRegister].(*structs.JobRegisterRequest); args.Opportunistic != want {
			t.Errorf("%s %s: %v, want %v", query, body, args.Opportunistic, want)
		}
	}
	f("", `{"Job":{"ID":"j"}}`, false)
	f("opportunistic=true", `{"Job":{"ID":"j"}}`, true)
	f("opportunistic", `{"Job":{"ID":"j"}}`, true)
	f("", `{"Job":{"ID":"j"},"Opportunistic":true}`, true)
	f("opportunistic=false", `{"Job":{"ID":"j"},"Opportunistic":true}`, false)
}

// Whether it is an offer or a bid is said by the path, whatever the body says.
func TestExchangePut(t *testing.T) {
	fk := newFake()
	ts := newTestServer(t, testConfig(fk))
	fk.answer[wire.MethodExchangePut] = structs.ExchangePutReply{ID: "x1", WriteMeta: structs.WriteMeta{Index: 9}}
	for path, bid := range map[string]bool{"offer": false, "bid": true} {
		body := `{"Owner":"team","Bid":true,"Cells":{"Level":"node","Count":2},"From":"2026-12-01T00:00:00Z","Until":"2026-12-02T00:00:00Z","Points":3}`
		resp, text := post(t, ts, "PUT", "/v1/exchange/"+path, body)
		if text != `{"ID":"x1"}` || resp.Header.Get("X-Nomad-Index") != "9" {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
		fk.mu.Lock()
		x := fk.args[wire.MethodExchangePut].(*structs.ExchangePutRequest).Exchange
		fk.mu.Unlock()
		if x.Bid != bid || x.Owner != "team" || x.Cells.Count != 2 || x.Points != 3 || x.Until.Sub(x.From).Hours() != 24 {
			t.Errorf("%s: %+v", path, x)
		}
	}
	if _, text := post(t, ts, "GET", "/v1/exchanges", ""); text != "[]" {
		t.Error(text)
	}
	post(t, ts, "PUT", "/v1/virtual-cluster/team/points", `{"Points":-3}`)
	if args := fk.args[wire.MethodVirtualClusterPoints].(*structs.VirtualClusterPointsRequest); args.Name != "team" || args.Points != -3 {
		t.Errorf("%+v", args)
	}
}
