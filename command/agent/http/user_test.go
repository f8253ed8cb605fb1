package httpapi

import (
	"reflect"
	"testing"

	"github.com/nomadish/nomadish/internal/wire"
)

// TestUserHeader: who a request is of comes from its header alone.
func TestUserHeader(t *testing.T) {
	fk := newFake()
	ts := newTestServer(t, testConfig(fk))
	for _, row := range []struct{ path, method, body string }{
		{"/v1/jobs", wire.MethodJobRegister, `{"Job":{"ID":"j"},"User":"forged","WriteRequest":{"User":"forged"}}`},
		{"/v1/job/j/plan", wire.MethodJobPlan, `{"Job":{"ID":"j"},"User":"forged"}`},
		{"/v1/job/j/revert", wire.MethodJobRevert, `{"JobID":"j","JobVersion":1,"User":"forged"}`},
	} {
		for _, user := range []string{"", "ada"} {
			if resp, text := post(t, ts, "PUT", row.path, row.body, "X-Nomadish-User", user); resp.StatusCode != 200 {
				t.Fatalf("%s: %d %s", row.path, resp.StatusCode, text)
			}
			fk.mu.Lock()
			args := reflect.ValueOf(fk.args[row.method]).Elem().FieldByName("User").String()
			fk.mu.Unlock()
			if args != user {
				t.Errorf("%s with header %q: it is of %q", row.path, user, args)
			}
		}
	}
}
