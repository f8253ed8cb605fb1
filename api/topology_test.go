package api

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestTopology(t *testing.T) {
	var requested string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requested = r.URL.RequestURI()
		w.Header().Set("X-Nomad-Index", "7")
		w.Header().Set("X-Nomad-NextToken", "next")
		_, _ = w.Write([]byte(`{"Levels":["gpu"],"Nodes":[{"ID":"n","Devices":8,"Cells":{"Level":"node","Free":3}}],"Free":3,"Used":5}`))
	}))
	defer server.Close()
	c, err := New(Config{Address: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	top, meta, err := c.Topology(t.Context(), true, &Query{PerPage: 3, NextToken: "a"})
	if err != nil || requested != "/v1/topology?details=true&next_token=a&per_page=3" || meta.Index != 7 || meta.NextToken != "next" {
		t.Errorf("asked %s, %+v %v", requested, meta, err)
	}
	if n := top.Nodes[0]; n.Devices != 8 || n.Cells.Free != 3 || top.Free != 3 || top.Used != 5 {
		t.Errorf("have %+v", top)
	}
	if _, _, err = c.Topology(t.Context(), false, nil); err != nil || requested != "/v1/topology" {
		t.Errorf("asked %s %v", requested, err)
	}
	if _, _, err = c.Nodes().Topology(t.Context(), "a/b", nil); err != nil || requested != "/v1/topology/node/a%2Fb" {
		t.Errorf("asked %s %v", requested, err)
	}
}
