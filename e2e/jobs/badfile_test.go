package jobs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/e2e/harness"
)

// TestWrongJobFiles: each wrong job file is refused with exit code 1, its name, a line and what is allowed there; nothing of
// it is registered, and the agent lives. The files and what is said of each are those of the parser's own test.
func TestWrongJobFiles(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	files, err := filepath.Glob("../../command/jobspec/testdata/bad/*.hcl")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d wrong files, want 30 and more (%v)", len(files), err)
	}
	huge := a.JobFile("huge", "job \"huge\" {}\n"+strings.Repeat("# ten megabytes of nothing\n", 400_000))
	line := regexp.MustCompile(`\.hcl:\d+:\d+: \S`)
	f := func(file string, want ...string) {
		t.Helper()
		for _, command := range [][]string{{"job", "run", "-detach"}, {"job", "validate"}} {
			out, code := a.CLI(append(command, file)...)
			out = strings.ReplaceAll(out, filepath.Dir(file)+"/", "")
			if code != 1 {
				t.Errorf("%s %s: exit %d, want 1\n%s", command[1], filepath.Base(file), code, out)
			}
			for _, w := range append(want, filepath.Base(file)) {
				if !strings.Contains(out, w) {
					t.Errorf("%s %s: it does not say %q:\n%s", command[1], filepath.Base(file), w, out)
				}
			}
		}
	}
	for _, file := range files {
		text, err := os.ReadFile(strings.TrimSuffix(file, ".hcl") + ".want")
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
		if _, reported, ok := strings.Cut(first, ".hcl:"); ok && line.MatchString(first) {
			f(file, ".hcl:"+reported)
		} else {
			f(file, strings.TrimSpace(reported))
		}
	}
	f(huge, "10485760 bytes")
	if out, code := a.CLI("job", "run", filepath.Join(a.Dir, "nothing.nomad.hcl")); code != 1 || !strings.Contains(out, "nothing.nomad.hcl: no such file") {
		t.Errorf("a file that is not there: exit %d\n%s", code, out)
	}
	if jobs, _, err := a.Nomad.Jobs().List(nil); err != nil || len(jobs) != 0 {
		t.Errorf("after all that %d jobs are registered (%v), want none", len(jobs), err)
	}
}
