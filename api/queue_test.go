package api

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestQueue(t *testing.T) {
	var requested string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requested = r.URL.RequestURI()
		w.Header().Set("X-Nomad-NextToken", "next")
		_, _ = w.Write([]byte(`[{"JobID":"train","Place":2,"Missing":3,"Waited":5000000000,"Priority":{"Total":61},"State":"waiting"}]`))
	}))
	defer server.Close()
	c, err := New(Config{Address: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	entries, meta, err := c.Queue(t.Context(), "gpu", &Query{PerPage: 3, Prefix: "t", NextToken: "a"})
	if err != nil || requested != "/v1/queue?next_token=a&node_pool=gpu&per_page=3&prefix=t" || meta.NextToken != "next" {
		t.Errorf("asked %s, %+v %v", requested, meta, err)
	}
	if len(entries) != 1 || entries[0].JobID != "train" || entries[0].Place != 2 || entries[0].Waited != 5e9 || entries[0].Priority.Total != 61 {
		t.Errorf("have %+v", entries)
	}
	if _, _, err = c.Queue(t.Context(), "", nil); err != nil || requested != "/v1/queue" {
		t.Errorf("asked %s %v", requested, err)
	}
}
