package command

import (
	"os"
	"strings"
	"testing"
)

// A file of the other language is known as one, whatever it is called.
func TestNodePoolFileOfTheOtherLanguage(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"x.hcl": "\n# a pool\nnode_pool \"a\" {}\n", "x.json": " {\"node_pool\": {\"a\": {}}}", "bad.json": "{\"node_pool\": "} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for line, want := range map[string]string{
		"-json x.hcl": "x.hcl: it looks like HCL, not JSON: leave -json out", "x.json": "x.json: it looks like JSON, not HCL: use -json", "-json bad.json": "bad.json:",
	} {
		for _, command := range []string{"node pool apply ", "job run "} {
			got := newFake(t).run(t, strings.Fields(command+line)...)
			if got.code != exitFailed || !strings.HasPrefix(got.err, want) || strings.Contains(line, "bad") && strings.Contains(got.err, "looks like") {
				t.Errorf("%s: exit code %d, %q", command+line, got.code, got.err)
			}
		}
	}
}
