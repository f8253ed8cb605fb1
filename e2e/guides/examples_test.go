package guides

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// byDemo are the files that examples/demo.sh runs, which .ci/run does, and that file.
var byDemo = []string{"demo.sh", "demo/clock.nomad.hcl", "demo/dgx.hcl", "demo/report.nomad.hcl", "demo/training.nomad.hcl"}

// byOthers are the files that other files or commands name in parts.
var byOthers = map[string]string{
	"slurm/train.sh":                "slurm/train.nomad.hcl runs it, in TestFromSlurmGuide",
	"slurm/nodes.hcl":               "the agent of TestFromSlurmGuide",
	"slurm/steps.nomad.hcl":         "TestFromSlurmGuide",
	"slurm/train.nomad.hcl":         "TestFromSlurmGuide",
	"workflows/route.nomad.hcl":     "workflows/chip.nomad.hcl names it",
	"virtual-clusters/speech.hcl":   "a loop of virtual-clusters.md names it",
	"virtual-clusters/students.hcl": "a loop of virtual-clusters.md names it",
	"agent.hcl":                     "it is /etc/nomadish.d of one-machine.md",
}

// TestExamples runs the examples that no page runs, and checks that each of the others is run.
func TestExamples(t *testing.T) {
	t.Parallel()
	a := newTerminal(t)
	a.start("nomadish agent -dev -simulate examples/racks.hcl -simulate-beside")
	var ran strings.Builder
	for _, c := range []command{
		{line: "nomadish config validate examples/server.hcl"},
		{line: "nomadish job run -detach examples/system.nomad.hcl"},
		{line: "nomadish job status watch", output: "watch 0 0 1 0 0 0 0"},
		{line: "nomadish job run -detach examples/share.nomad.hcl"},
		{line: "nomadish job status share", output: "infer 0 0 4 0 0 0 0"},
		{line: "nomadish topology", output: "32 devices on 4 nodes: 1 used, 31 free"},
	} {
		a.shows("this test", c)
		ran.WriteString(c.line + "\n")
	}
	for _, on := range guides {
		for _, page := range on.pages {
			for _, b := range blocksOf(t, page) {
				for _, c := range b.commands() {
					if !exempt(page, c) {
						ran.WriteString(c.line + "\n")
					}
				}
			}
		}
	}
	demo, err := os.ReadFile(root + "examples/demo.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range byDemo[1:] {
		if !strings.Contains(string(demo), "examples/"+name) {
			t.Errorf("examples/demo.sh does not run examples/%s", name)
		}
	}
	all := map[string]bool{}
	err = filepath.WalkDir(root+"examples", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			all[strings.TrimPrefix(path, root+"examples/")] = true
		}
		return err
	})
	if err != nil || len(all) < 30 {
		t.Fatalf("%d examples: %v", len(all), err)
	}
	for _, name := range byDemo {
		delete(all, name)
	}
	for name := range byOthers {
		if !all[name] {
			t.Errorf("there is no examples/%s", name)
		}
		delete(all, name)
	}
	for name := range all {
		if !strings.Contains(ran.String(), "examples/"+name) {
			t.Errorf("nothing runs examples/%s", name)
		}
	}
}
