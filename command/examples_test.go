package command

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/command/examples"
	"github.com/nomadish/nomadish/command/jobspec"
	"github.com/nomadish/nomadish/command/jobspec/hclfile"
	"github.com/nomadish/nomadish/structs"
)

// Every job file among the examples is read, is right, and states nothing that is
// without effect.
func TestExampleJobs(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../examples/*.nomad.hcl", "../examples/demo/*.nomad.hcl", "../examples/guides/*.nomad.hcl", "../examples/virtual-clusters/*.nomad.hcl", "../examples/slurm/train.nomad.hcl", "../examples/workflows/borrow.nomad.hcl", "examples/*.nomad.hcl"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %q %v", pattern, found, err)
		}
		files = append(files, found...)
	}
	seen := map[string]bool{}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		job, warnings, err := jobspec.Parse(file, src, jobspec.Options{Options: hclfile.Options{AllowFS: true, BaseDir: filepath.Dir(file)}})
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v, warnings %v", file, err, warnings)
			continue
		}
		seen[filepath.Base(file)] = true
		job.Canonicalize()
		switch g := job.TaskGroups[0]; filepath.Base(file) {
		case "gpu.nomad.hcl":
			if d := g.Tasks[0].Resources.Devices[0]; d.Count != 2 || d.Topology.Level != "pcie" || !d.Topology.Required || d.Share != 1000 {
				t.Errorf("%s: %+v", file, d)
			}
		case "gang.nomad.hcl":
			if d := g.Tasks[0].Resources.Devices[0]; g.Count != 2 || d.Count != 8 || g.Gang == nil || g.Topology.Level != "rack" || !g.Topology.Required {
				t.Errorf("%s: %+v %+v", file, g, d)
			}
		case "share.nomad.hcl":
			if d := g.Tasks[0].Resources.Devices[0]; d.Share != 250 {
				t.Errorf("%s: %+v", file, d)
			}
		case "regions.nomad.hcl":
			if m := job.Multiregion; m == nil || len(m.Regions) != 2 || m.Regions[0].Name != "west" || m.Regions[0].Count != 2 || g.Count != 0 {
				t.Errorf("%s: %+v, %d instances", file, m, g.Count)
			}
		case "night.nomad.hcl":
			if job.Reclaim != structs.ReclaimSuspend || job.Priority != 20 {
				t.Errorf("%s: %s %d", file, job.Reclaim, job.Priority)
			}
		case "urgent.nomad.hcl":
			if job.Partial != structs.PartialPreempt || job.Priority != 90 {
				t.Errorf("%s: %s %d", file, job.Partial, job.Priority)
			}
		}
	}
	for _, name := range []string{"gpu", "gang", "share", "night", "urgent", "regions"} {
		if !seen[name+".nomad.hcl"] {
			t.Errorf("the example %s is missing", name)
		}
	}
}

// The projects of docs/guides/projects.md are read, and so is what `project init` writes, with its comments too.
func TestExampleProjects(t *testing.T) {
	for path, want := range map[string]int{"../examples/projects/projects.hcl": 2, "examples/project.hcl": 1} {
		f, err := readProjects(nil, path, projectHCL)
		if err != nil || len(f.projects) != want || len(f.flows) != 1 {
			t.Fatalf("%s: %+v %v", path, f, err)
		}
	}
	text := strings.NewReplacer("  # calendar", "  calendar", "  #   ", "    ", "  # }", "  }", "  # objective", "  objective", "  # throughput", "  throughput").Replace(examples.Project)
	f, err := readProjects(strings.NewReader(text), "-", projectHCL)
	if err != nil || len(f.projects[0].Calendar) != 1 || len(f.projects[0].Calendar[0].Slots) != 2 || f.projects[0].Throughput == nil {
		t.Errorf("%v\n%s", err, text)
	}
}

// The tenants of docs/guides/virtual-clusters.md own what it says, which the simulated nodes of the example can hold at once.
func TestExampleVirtualClusters(t *testing.T) {
	owned := map[string]string{}
	for _, team := range []string{"vision", "speech", "students"} {
		f, err := readVirtualClusters(nil, "../examples/virtual-clusters/"+team+".hcl", false)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.clusters) != 1 || f.clusters[0].Name != team {
			t.Fatalf("%s: %+v", team, f.clusters)
		}
		owned[team] = cellCounts(f.clusters[0].Cells) + " " + f.clusters[0].OverLimit
	}
	if want := map[string]string{"vision": "node 2 opportunistic", "speech": "node 1 ask", "students": "socket 1 "}; !maps.Equal(owned, want) {
		t.Errorf("%v, want %v", owned, want)
	}
}
