package workflows

import (
	"testing"

	"github.com/nomadish/nomadish/e2e/harness"
)

// TestWorkflowBadInput: what a workflow states wrongly is refused with its place in the file and what is wrong about it. A stage larger than the cluster
// is refused by `plan`, and waits with the same reason when it is run.
func TestWorkflowBadInput(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "client {\n  cpu_total_compute = 4000\n  memory_total_mb = 4000\n}\n")
	group := func(cpu, more string) string {
		return "group \"g\" {\n task \"t\" {\n driver = \"mock_driver\"\n config {\n run_for = \"1h\"\n }\n resources {\n cpu = " + cpu + "\n memory = 10\n" + more + "\n}\n}\n}\n"
	}
	job := func(name, head string) string {
		return "job \"" + name + "\" {\n" + head + "\n" + group("1000", "") + "}\n"
	}
	stage := func(text string) string { return "stage \"s\" {\n" + text + "}\n" }
	for _, c := range []struct{ name, text, line, want string }{
		{"empty", stage(""), "validate", `empty.nomad.hcl:2:1: workflow "empty": stage "s": it has no job (write job "NAME"`},
		{"cycle", stage(job("x", `depends_on = ["y"]`) + job("y", `depends_on = ["x"]`)), "validate", "jobs wait for each other: x → y → x"},
		{"twice", stage(job("x", "") + job("x", "")), "validate", `workflow "twice": two jobs have the name "x"; the first is on line 3`},
		{"large", stage("job \"x\" {\n" + group("5000", "") + "}\n"), "plan", "the nodes that are ready could not hold it if they were empty: 1000 MHz are missing"},
		{"below", "reserve = { cpu = 500 }\n" + stage(job("x", "")), "plan", `reserve: cpu: 500 MHz are less than the 1000 MHz that stage "s" needs (raise it, or write reserve = "max")`},
		{"kind", "lend {\n to = \"team:x\"\n}\n" + stage(job("x", "")), "validate", `lend "team:x": to: must be a kind and a name, as in "group:interns"; the kinds are "user", "group", "project", "namespace" or "node_pool"`},
		{"share", "lend {\n to = \"namespace:default\"\n share = -1\n}\n" + stage(job("x", "")), "validate", `lend "namespace:default": share: must be 1 to 1000000, not -1 (leave it out to lend in the order of the blocks)`},
		{"license", stage("job \"x\" {\n" + group("1000", "licenses = { vcs = 1 }") + "}\n"), "plan", "resources: licenses: unknown license \"vcs\": this region has no licenses; `nomadish license apply` makes one"},
		{"group", "lend {\n to = \"group:nosuchgroup\"\n}\n" + stage(job("x", "")), "plan", `workflow "group": lend "group:nosuchgroup": the servers' user database has no group "nosuchgroup" (correct the name`},
		{"namespace", "lend {\n to = \"namespace:nowhere\"\n}\n" + stage(job("x", "")), "plan", `lend "namespace:nowhere": there is no namespace "nowhere"`},
		{"project", "lend {\n to = \"project:none\"\n}\n" + stage(job("x", "")), "plan", `lend "project:none": there is no project "none"`},
		{"service", stage(job("x", `type = "service"`)), "validate", `job "x": type: must be "batch" or "sysbatch", not "service"`},
	} {
		harness.CheckOutput(t, a, 1, "workflow "+c.line+" "+a.JobFile(c.name, "workflow \""+c.name+"\" {\n"+c.text+"}\n"), c.want)
	}
	harness.CheckOutput(t, a, 0, "workflow run -detach "+a.Dir+"/large.nomad.hcl")
	harness.WaitOutput(t, a, "workflow status large", "large run 1  pending", "the nodes that are ready could not hold it if they were empty: 1000 MHz are missing")
}
