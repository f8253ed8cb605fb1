//go:build !race

package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// earlierCommit is the version that clusters are upgraded from: the last one that knows 18 types of log entries. It may be
// moved to a later one whenever a type is added.
const earlierCommit = "3ef8962854416d88f57c4b91a41f6c3428d7bb6c"

// earlierVersion is what it says of itself.
const earlierVersion = "earlier"

// buildEarlier builds the earlier version, from its own source if the repository's history is at hand, else from this one with a
// type of log entries less, and gives the binary.
func buildEarlier(t *testing.T) string {
	t.Helper()
	own, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	out, source := filepath.Join(dir, "nomadish"), filepath.Join(dir, "source")
	run := func(in, env, name string, args ...string) error {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = in, append(os.Environ(), "CGO_ENABLED=0", env)
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, text)
		}
		return nil
	}
	build := func(in, tags string) error {
		return run(in, "", "go", "build", "-trimpath", "-buildvcs=false", "-tags", tags, "-o", out,
			"-gcflags", "github.com/nomadish/nomadish/...=-N -l", // that is compiled sooner, and the rest is there already
			"-ldflags", "-s -w -X github.com/nomadish/nomadish/command.Version="+earlierVersion, ".")
	}
	index := "GIT_INDEX_FILE=" + filepath.Join(dir, "index") // the repository's own is not touched
	if err = run(own, index, "git", "read-tree", earlierCommit); err == nil {
		if err = run(own, index, "git", "checkout-index", "--all", "--prefix="+source+"/"); err == nil {
			err = build(source, "")
		}
	}
	if err == nil {
		t.Logf("the earlier version is commit %s", earlierCommit)
		return out
	}
	t.Logf("the earlier version is this source with -tags earlier, as that of commit %s cannot be had: %v", earlierCommit, err)
	if err := build(own, "earlier"); err != nil {
		t.Fatal(err)
	}
	return out
}
