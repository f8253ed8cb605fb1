package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/api"
)

// Submit registers a job file and does not wait for what becomes of it.
func (a *Agent) Submit(id, text string) {
	a.T.Helper()
	if out, code := a.CLI("job", "run", "-detach", a.JobFile(id, text)); code != 0 {
		a.T.Fatalf("job run %s: exit %d\n%s", id, code, out)
	}
}

// Stop stops a job.
func (a *Agent) Stop(id string) {
	a.T.Helper()
	if out, code := a.CLI("job", "stop", "-detach", id); code != 0 {
		a.T.Fatalf("job stop %s: exit %d\n%s", id, code, out)
	}
}

// CLI runs the command line against the agent and returns its output and exit code.
func (a *Agent) CLI(args ...string) (out string, code int) {
	a.T.Helper()
	limit := Scaled(time.Minute)
	ctx, cancel := context.WithTimeout(a.T.Context(), limit)
	defer cancel()
	cmd := a.Command(ctx, args...)
	cmd.Env, cmd.Dir = append(os.Environ(), "NOMADISH_ADDR="+a.HTTP), a.WorkDir
	raw, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		a.T.Fatalf("nomadish %s: not done within %s\n%s", strings.Join(args, " "), limit, raw)
	}
	if err != nil && cmd.ProcessState == nil {
		a.T.Fatal(err)
	}
	return string(raw), cmd.ProcessState.ExitCode()
}

// JobFile writes a job file and returns its path.
func (a *Agent) JobFile(name, text string) string {
	a.T.Helper()
	path := filepath.Join(a.Dir, name+".nomad.hcl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		a.T.Fatal(err)
	}
	return path
}

// CheckOutput runs a command line, which must end with a code and print all parts.
func CheckOutput(t testing.TB, a *Agent, code int, line string, parts ...string) {
	t.Helper()
	if err := TryOutput(a, code, line, parts...); err != nil {
		t.Error(err)
	}
}

// TryOutput runs a command line and returns an error unless it ends with a code and prints all parts.
func TryOutput(a *Agent, code int, line string, parts ...string) error {
	out, got := a.CLI(strings.Fields(line)...)
	for _, part := range parts {
		if !strings.Contains(out, part) {
			return fmt.Errorf("%s: %q is missing in\n%s", line, part, out)
		}
	}
	if got != code {
		return fmt.Errorf("%s: exit code %d, want %d\n%s", line, got, code, out)
	}
	return nil
}

// WaitOutput waits until a command prints all parts.
func WaitOutput(t testing.TB, a *Agent, line string, parts ...string) {
	t.Helper()
	Within(t, 20*time.Second, line, func(context.Context) error { return TryOutput(a, 0, line, parts...) })
}

// Get requests a path by GET, until ctx or the test ends. It returns the status of the answer and its body.
func (a *Agent) Get(ctx context.Context, path string) (status int, body io.Reader) {
	a.T.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.HTTP+path, http.NoBody)
	if err != nil {
		a.T.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		a.T.Fatal(err)
	}
	a.T.Cleanup(func() { _ = resp.Body.Close() })
	return resp.StatusCode, resp.Body
}

// HTTPStatus returns the HTTP status of an error that is an answer; 0: it is none.
func HTTPStatus(err error) int {
	var answer *api.Error
	if errors.As(err, &answer) {
		return answer.Status
	}
	return 0
}
