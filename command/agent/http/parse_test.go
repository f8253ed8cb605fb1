package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// TestParserHears: who parses job files hears of callers that hang up, and what it says is answered as it is, at most 1 KiB of it.
func TestParserHears(t *testing.T) {
	called, heard := make(chan struct{}), make(chan error, 1)
	cfg := testConfig(newFake())
	cfg.ParseJob = func(ctx context.Context, source, _ string, _ bool) (*ParsedJob, error) {
		switch source {
		case "limited":
			return nil, structs.Errorf(structs.CodeLimited, "too many at once")
		case "broken":
			return nil, structs.Errorf(structs.CodeInternal, "no process")
		case "long":
			return nil, structs.Errorf(structs.CodeBadRequest, "%s", strings.Repeat("x", 1<<20))
		}
		close(called)
		<-ctx.Done()
		heard <- ctx.Err()
		return nil, ctx.Err()
	}
	ts := newTestServer(t, cfg)
	for source, want := range map[string]int{"limited": 429, "broken": 500, "long": 400} {
		resp, text := post(t, ts, "POST", "/v1/jobs/parse", `{"JobHCL":"`+source+`"}`)
		if resp.StatusCode != want || len(text) > structs.MaxErrorBytes {
			t.Errorf("%s: status %d and %d bytes, want %d", source, resp.StatusCode, len(text), want)
		}
	}
	ctx, hangUp := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, ts.URL+"/v1/jobs/parse", strings.NewReader(`{"JobHCL":"wait"}`))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		resp, err := ts.Client().Do(req)
		if err == nil {
			err = resp.Body.Close()
		}
		done <- err
	}()
	<-called
	hangUp()
	if err := <-heard; err == nil {
		t.Error("the context did not end with the caller")
	}
	if err := <-done; err == nil {
		t.Error("it was answered after all")
	}
}

// TestManyValues: a body of more values than any request needs is refused before it is read; quoted text is none of them.
func TestManyValues(t *testing.T) {
	f := func(body string, refused bool) {
		t.Helper()
		if err := checkValues([]byte(body)); (err != nil) != refused || err != nil && !strings.Contains(err.Error(), "more than 200000 objects") {
			t.Errorf("%.40s: %v, want that it is refused: %v", body, err, refused)
		}
	}
	f(`[`+strings.Repeat(`{},`, maxJSONContainers-2)+`{}]`, false)
	f(`[`+strings.Repeat(`{},`, maxJSONContainers-1)+`{}]`, true)
	f(`[`+strings.Repeat(`1,`, maxJSONValues)+`1]`, false)
	f(`[`+strings.Repeat(`1,`, maxJSONValues+1)+`1]`, true)
	f(`"`+strings.Repeat(`\"{[,`, maxJSONValues)+`"`, false)
	var v any
	if err := decodeJSON([]byte(strings.Repeat("[],", maxJSONContainers+1)), &v); structs.CodeOf(err) != structs.CodeBadRequest {
		t.Errorf("%v, want a bad request", err)
	}
}

// TestDeepBody: a body with more values within each other than any request needs is refused with the limit, at each door.
func TestDeepBody(t *testing.T) {
	nested := func(depth int) []byte {
		return []byte(`{"Job":{"TaskGroups":[{"Tasks":[{"Config":` + strings.Repeat(`{"a":`, depth-6) + `[]` + strings.Repeat(`}`, depth-6) + `}]}]}}`)
	}
	for _, into := range []any{new(any), new(structs.JobRegisterRequest), new(structs.JobPlanRequest), new(structs.Job)} {
		if err := decodeJSON(nested(structs.MaxJSONDepth-1), into); err != nil {
			t.Errorf("%T: %v", into, err)
		}
		for _, depth := range []int{structs.MaxJSONDepth, 300, 1018} {
			err := decodeJSON(nested(depth), into)
			if !errors.Is(err, structs.ErrBadRequest) || !strings.Contains(err.Error(), "at most 200 are allowed") {
				t.Errorf("%T: %d within each other: %v, want a bad request with the limit", into, depth+1, err)
			}
		}
	}
}
