package walls

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	enabledLinters = regexp.MustCompile(`(?m)^\s*enable: \[([^\]]*)\]`)
	nolint         = regexp.MustCompile(`//nolint:([a-z0-9,]+)`)
)

// idleNolint returns the linters, of those that a source switches off somewhere, that do not run at all.
func idleNolint(text string, enabled []string) (idle []string) {
	for _, m := range nolint.FindAllStringSubmatch(text, -1) {
		for name := range strings.SplitSeq(m[1], ",") {
			if !slices.Contains(enabled, name) {
				idle = append(idle, name)
			}
		}
	}
	return idle
}

// TestNolint: only linters that run are switched off.
func TestNolint(t *testing.T) {
	config, err := os.ReadFile("../../.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	m := enabledLinters.FindSubmatch(config)
	if m == nil {
		t.Fatal("no list of linters")
	}
	enabled := regexp.MustCompile(`[a-z0-9]+`).FindAllString(string(m[1]), -1)
	if len(enabled) < 10 {
		t.Fatalf("only %v run", enabled)
	}
	if idle := idleNolint("x() //nolint:errcheck,nobody // why\n", append(enabled, "errcheck")); !slices.Equal(idle, []string{"nobody"}) {
		t.Errorf("it sees %v", idle)
	}
	eachText(t, ".go", func(name string, text []byte) {
		if strings.HasPrefix(name, "e2e/walls/") { // its tests quote what breaks a wall
			return
		}
		for _, linter := range idleNolint(string(text), enabled) {
			t.Errorf("%s: nolint of %s, which does not run: keep the reason as a comment, or nothing", name, linter)
		}
	})
}
