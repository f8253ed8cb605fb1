package jobspec

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/command/jobspec/hclfile"
)

var rewrite = flag.Bool("rewrite", false, "write what is into testdata, to be reviewed")

// Each testdata/bad/X.hcl is refused with the problems of X.want.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.hcl")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 30 {
		t.Fatalf("only %d bad files found", len(files))
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(strings.TrimSuffix(name, ".hcl"), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			job, _, err := Parse(name, src, Options{})
			if err == nil || job != nil {
				t.Fatalf("was accepted: %+v", job)
			}
			var problems hclfile.Problems
			if !errors.As(err, &problems) {
				t.Fatalf("the error is %T, not a list of problems", err)
			}
			golden(t, strings.TrimSuffix(file, ".hcl")+".want", err.Error()+"\n")
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: have\n%s\nwant\n%s", file, got, want)
	}
}
