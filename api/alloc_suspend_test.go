package api

import (
	"net/http"
	"testing"
)

func TestAllocSuspendAndResume(t *testing.T) {
	c, last := serve(t, Config{}, http.StatusOK, `{"EvalID":"e"}`)
	if err := c.Allocations().Suspend(t.Context(), "a/b"); err != nil || last.Method != http.MethodPut || last.URL.EscapedPath() != "/v1/client/allocation/a%2Fb/suspend" {
		t.Errorf("suspend: %s %s, %v", last.Method, last.URL, err)
	}
	reply, err := c.Allocations().Resume(t.Context(), "a")
	if err != nil || reply.EvalID != "e" || last.Method != http.MethodPut || last.URL.Path != "/v1/client/allocation/a/resume" {
		t.Errorf("resume: %s %s, %+v, %v", last.Method, last.URL, reply, err)
	}
}
