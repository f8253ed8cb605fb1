package jobspec

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/command/jobspec/hclfile"
	"github.com/nomadish/nomadish/structs"
)

func mustParse(t *testing.T, src string, opts Options) *structs.Job {
	t.Helper()
	job, _, err := Parse("test.hcl", []byte(src), opts)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// Each testdata/good/X.hcl gives the job and the warnings of X.want.
func TestGoodFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/good/*.hcl")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			job, warnings, err := Parse(filepath.Base(file), src, Options{})
			if err != nil {
				t.Fatal(err)
			}
			out, err := json.MarshalIndent(job, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(file, ".hcl")+".want", warnings.Error()+"\n"+string(out)+"\n")
		})
	}
}

const minimal = `job "x" {
  %TYPE%
  group "g" {
    task "t" { driver = "raw_exec" }
  }
}`

func TestDefaultsAreThoseOfTheOfficialClient(t *testing.T) {
	for _, jobType := range []string{"service", "batch", "system", "sysbatch"} {
		ours := mustParse(t, strings.Replace(minimal, "%TYPE%", `type = "`+jobType+`"`, 1), Options{})
		ours.Canonicalize()

		id, group := "x", "g"
		theirs := &api.Job{ID: &id, Type: &jobType, TaskGroups: []*api.TaskGroup{{
			Name: &group, Tasks: []*api.Task{{Name: "t", Driver: "raw_exec"}},
		}}}
		theirs.Canonicalize()
		raw, err := json.Marshal(theirs)
		if err != nil {
			t.Fatal(err)
		}
		var read structs.Job
		if err := json.Unmarshal(raw, &read); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(ours.TaskGroups, read.TaskGroups) {
			have, _ := json.MarshalIndent(ours.TaskGroups, "", " ")
			want, _ := json.MarshalIndent(read.TaskGroups, "", " ")
			t.Errorf("%s: have %s\nwant %s", jobType, have, want)
		}
	}
}

func TestVariables(t *testing.T) {
	const head = `
		variable "name" { type = string }
		variable "count" {
			type    = number
			default = 1
		}
		variable "list" {
			type    = list(string)
			default = []
		}
		variables { short = "s" }
		job "x" {
			name = "${var.name}-${var.short}"
			datacenters = concat(["dc"], var.list)
			group "g" {
				count = var.count
				task "t" { driver = "raw_exec" }
			}
		}`
	f := func(opts hclfile.Options, name string, count int, datacenters ...string) {
		t.Helper()
		job := mustParse(t, head, Options{Options: opts})
		if job.Name != name || job.TaskGroups[0].Count != count || !reflect.DeepEqual(job.Datacenters, datacenters) {
			t.Errorf("%+v: have %q, %d, %q", opts, job.Name, job.TaskGroups[0].Count, job.Datacenters)
		}
	}
	vars := func(kv ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return m
	}
	f(hclfile.Options{Vars: vars("name", "a")}, "a-s", 1, "dc")
	f(hclfile.Options{Vars: vars("name", "a", "count", "3", "list", `["x", "y"]`)}, "a-s", 3, "dc", "x", "y")
	f(hclfile.Options{Vars: vars("name", "a", "short", "z")}, "a-z", 1, "dc")
	f(hclfile.Options{Env: []string{"NOMAD_VAR_name=e", "NOMAD_VAR_other=1", "PATH=x"}}, "e-s", 1, "dc")
	f(hclfile.Options{Env: []string{"NOMADISH_VAR_name=ours", "NOMAD_VAR_name=theirs"}}, "ours-s", 1, "dc")
	file := hclfile.VarFile{Name: "v.hcl", Src: []byte("name = \"f\"\ncount = 2\n")}
	f(hclfile.Options{VarFiles: []hclfile.VarFile{file}, Env: []string{"NOMAD_VAR_name=e"}}, "f-s", 2, "dc")
	f(hclfile.Options{VarFiles: []hclfile.VarFile{file}, Vars: vars("name", "v")}, "v-s", 2, "dc")
	f(hclfile.Options{VarFiles: []hclfile.VarFile{{Name: "v.json", Src: []byte(`{"name": "j", "list": ["q"]}`)}}}, "j-s", 1, "dc", "q")
	f(hclfile.Options{Vars: vars("name", "a", "namee", "b"), Lenient: true}, "a-s", 1, "dc")

	bad := func(opts hclfile.Options, want string) {
		t.Helper()
		_, _, err := Parse("test.hcl", []byte(head), Options{Options: opts})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: have %v, want %q", opts, err, want)
		}
	}
	bad(hclfile.Options{}, `test.hcl:2:3: variable "name" has no value`)
	bad(hclfile.Options{Vars: vars("name", "a", "namee", "b")}, `-var namee: no variable "namee" is declared; did you mean var.name?`)
	bad(hclfile.Options{Vars: vars("name", "a", "count", "many")}, "-var count: must be a value of type number")
	bad(hclfile.Options{Vars: vars("name", "a", "count", `"many"`)}, `-var count: variable "count" must be of type number`)
	bad(hclfile.Options{Vars: vars("name", "a", "count", "1 +")}, "-var count:1:4:")
	bad(hclfile.Options{VarFiles: []hclfile.VarFile{{Name: "v.hcl", Src: []byte("naem = 1")}}}, `v.hcl:1:1: no variable "naem" is declared; did you mean var.name?`)
	bad(hclfile.Options{VarFiles: []hclfile.VarFile{{Name: "v.hcl", Src: []byte("name = ")}}}, "v.hcl:1:8:")
	bad(hclfile.Options{VarFiles: []hclfile.VarFile{{Name: "v.json", Src: []byte("{")}}}, "v.json:1:1:")
}

func TestRuntimeReferencesStayText(t *testing.T) {
	f := func(value, want string) {
		t.Helper()
		job := mustParse(t, `
			variable "v" { default = "V" }
			job "x" {
				group "g" {
					task "t" {
						driver = "raw_exec"
						env {
							X = `+value+`
						}
					}
				}
			}`, Options{})
		if got := job.TaskGroups[0].Tasks[0].Env["X"]; got != want {
			t.Errorf("%s: have %q, want %q", value, got, want)
		}
	}
	f(`"${NOMAD_PORT_http}"`, "${NOMAD_PORT_http}")
	f(`"${attr.kernel.name}"`, "${attr.kernel.name}")
	f(`attr.kernel.name`, "${attr.kernel.name}")
	f(`"${node.unique.id}:${meta.x-y}"`, "${node.unique.id}:${meta.x-y}")
	f(`"${attr.cpu} ${attr.cpu.arch}"`, "${attr.cpu} ${attr.cpu.arch}")
	f(`"${meta["a.b"]}"`, `${meta["a.b"]}`)
	f(`"${HOME} $${HOME} %%{x}"`, "${HOME} ${HOME} %{x}")
	f(`"${secret.db.password}"`, "${secret.db.password}")
	f(`"${var.v}${NOMAD_ALLOC_INDEX}"`, "V${NOMAD_ALLOC_INDEX}")
	f(`upper("${env["HOME"]}")`, `${ENV["HOME"]}`)
	f(`join(",", [for p in ["a", "b"] : "${p}=${NOMAD_JOB_ID}"])`, "a=${NOMAD_JOB_ID},b=${NOMAD_JOB_ID}")
	f(`"%{ for p in ["a"] }${p}${meta.p}%{ endfor }"`, "a${meta.p}")
	f(`var.v == "V" ? node.class : attr.x`, "${node.class}")
	f("<<EOT\n{{ env \"NOMAD_X\" }} ${meta.y}\nEOT\n", "{{ env \"NOMAD_X\" }} ${meta.y}\n")
}

func TestFunctions(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(expr, want string) {
		t.Helper()
		src := "job \"x\" {\n meta { x = " + expr + " }\n group \"g\" {\n task \"t\" { driver = \"raw_exec\" }\n }\n}\n"
		job := mustParse(t, src, Options{Options: hclfile.Options{AllowFS: true, BaseDir: dir}})
		if got := job.Meta["x"]; got != want {
			t.Errorf("%s: have %q, want %q", expr, got, want)
		}
	}
	f(`file("a.txt")`, "hello")
	f(`filebase64("a.txt")`, "aGVsbG8=")
	f(`fileexists("b.txt")`, "false")
	f(`join(",", fileset(".", "*.txt"))`, "a.txt")
	f(`basename("/x/y.z")`, "y.z")
	f(`base64decode(base64encode("é"))`, "é")
	f(`sha256("x")`, "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881")
	f(`format("%05.1f|%s", 3.14159, "x")`, "003.1|x")
	f(`sum([1, 2, 3.5])`, "6.5")
	f(`startswith("abc", "ab") && strcontains("abc", "bc") && !endswith("abc", "x")`, "true")
	f(`alltrue([true, anytrue([false, true])])`, "true")
	f(`try(jsondecode("{").x, "fallback")`, "fallback")
	f(`can(tonumber("x"))`, "false")
	f(`convert("3", number) + 1`, "4")
	f(`jsonencode(yamldecode("a: [1, x]"))`, `{"a":[1,"x"]}`)
	f(`length(distinct(flatten([["a"], ["a", "b"]])))`, "2")
	f(`uuidv5("dns", "example.com")`, "cfbff0d1-9375-5685-968c-48ce8b15ae17")
	f(`strlen(uuidv4())`, "36")
	f(`cidrhost("10.1.0.0/16", 300)`, "10.1.1.44")
	f(`cidrhost("10.1.0.0/16", -1)`, "10.1.255.255")
	f(`cidrsubnet("10.1.0.0/16", 8, 3)`, "10.1.3.0/24")
	f(`cidrsubnet("fd00::/48", 16, 5)`, "fd00:0:0:5::/64")
	f(`cidrnetmask("10.0.0.0/12")`, "255.240.0.0")
	f(`regex_replace("a1b2", "[0-9]", "-")`, "a-b-")
	f(`indent(2, "a\nb")`, "a\n  b")
}

func TestShorthands(t *testing.T) {
	job := mustParse(t, `job "x" {
		vault { policies = ["p"] }
		secret "s" {
			provider = "vault"
			path     = "a/b"
		}
		task "one" { driver = "raw_exec" }
		group "g" {
			task "two" {
				driver = "raw_exec"
				vault { policies = ["own"] }
			}
		}
	}`, Options{})
	if len(job.TaskGroups) != 2 || job.TaskGroups[1].Name != "one" || job.TaskGroups[1].Count != 1 {
		t.Fatalf("groups: %+v", job.TaskGroups)
	}
	one, two := job.LookupTaskGroup("one").Tasks[0], job.LookupTaskGroup("g").Tasks[0]
	if one.Vault.Policies[0] != "p" || two.Vault.Policies[0] != "own" || !one.Vault.Env {
		t.Errorf("vault: %+v, %+v", one.Vault, two.Vault)
	}
	if len(one.Secrets) != 1 || len(two.Secrets) != 1 || one.Secrets[0] == two.Secrets[0] {
		t.Errorf("secrets: %+v, %+v", one.Secrets, two.Secrets)
	}
}

func TestUnstatedKeepsItsDefault(t *testing.T) {
	job := mustParse(t, `job "x" {
		priority = null
		group "g" {
			count = null
			scaling {
				min = 3
				max = 5
			}
			task "t" {
				driver       = "raw_exec"
				kill_timeout = null
				template {
					data        = "x"
					destination = "local/x"
				}
			}
		}
		group "none" {
			count = 0
			task "t" {
				driver       = "raw_exec"
				kill_timeout = "0s"
			}
		}
	}`, Options{})
	if job.Priority != 0 || job.TaskGroups[0].Count != 3 || job.TaskGroups[1].Count != 0 {
		t.Errorf("priority %d, counts %d and %d", job.Priority, job.TaskGroups[0].Count, job.TaskGroups[1].Count)
	}
	task := job.TaskGroups[0].Tasks[0]
	if task.KillTimeout != structs.DefaultKillTimeout || task.Templates[0].Uid != -1 || job.TaskGroups[1].Tasks[0].KillTimeout != 0 {
		t.Errorf("task %+v", task)
	}
}

func TestLimits(t *testing.T) {
	f := func(limits hclfile.Limits, src, want string) {
		t.Helper()
		_, _, err := Parse("test.hcl", []byte(src), Options{Options: hclfile.Options{Limits: limits}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("have %v, want %q", err, want)
		}
	}
	f(hclfile.Limits{FileBytes: 10}, "job \"x\" { }", "test.hcl: the file has 11 B, more than the limit of 10 B")
	f(hclfile.Limits{}, strings.Repeat("#", 10_000_001), "more than the limit of 10 MB")
	f(hclfile.Limits{}, "x = "+strings.Repeat("[", 100_000), "nested deeper than 200 levels")
	f(hclfile.Limits{}, "x = "+strings.Repeat("!", 100_000), "nested deeper than 200 levels")
	f(hclfile.Limits{}, "x = "+strings.Repeat("true ? 1 : ", 100_000), "nested deeper than 200 levels")
	f(hclfile.Limits{}, "x = "+strings.Repeat(`"${`, 100_000), "nested deeper than 200 levels")
	f(hclfile.Limits{}, strings.Repeat("a {", 100_000), "nested deeper than 200 levels")
	f(hclfile.Limits{Blocks: 3}, `job "x" {
		dynamic "group" {
			for_each = range(4)
			labels   = ["g${group.key}"]
			content {}
		}
	}`, "dynamic blocks make more than the limit of 3 blocks")
	bomb := "locals {\n a0 = \"0123456789\"\n"
	for i := range 12 {
		n := string(rune('a' + i))
		next := string(rune('a' + i + 1))
		bomb += " " + next + "0 = \"" + strings.Repeat("${local."+n+"0}", 10) + "\"\n"
	}
	f(hclfile.Limits{}, bomb+"}\njob \"x\" {}\n", "more than the limit of 10000000")
}

// A vault block of a job or of a group is that of each of its tasks that states none; the nearest one counts.
func TestVaultOfAGroup(t *testing.T) {
	const src = `job "x" {
  vault { role = "job" }
  group "g" {
    vault {
      role     = "group"
      policies = ["a"]
      env      = false
    }
    task "t" { driver = "raw_exec" }
    task "own" {
      driver = "raw_exec"
      vault { role = "task" }
    }
  }
  group "h" {
    task "t" { driver = "raw_exec" }
  }
}`
	job, warnings, err := Parse("test.hcl", []byte(src), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range job.TaskGroups {
		for _, task := range g.Tasks {
			got = append(got, fmt.Sprintf("%s/%s %s %q %v", g.Name, task.Name, task.Vault.Role, task.Vault.Policies, task.Vault.Env))
		}
	}
	if want := []string{`g/t group ["a"] false`, `g/own task [] true`, `h/t job [] true`}; !slices.Equal(got, want) {
		t.Errorf("have %q, want %q", got, want)
	}
	want := `test.hcl:4:5: job "x" > group "g" > task "t": vault: is accepted but has no effect yet
test.hcl:12:7: job "x" > group "g" > task "own": vault: is accepted but has no effect yet
test.hcl:2:3: job "x" > group "h" > task "t": vault: is accepted but has no effect yet`
	if warnings.Error() != want {
		t.Errorf("have the warnings\n%s\nwant\n%s", warnings.Error(), want)
	}
	if _, _, err := Parse("test.hcl", []byte(strings.Replace(src, "policies", "polices", 1)), Options{}); err == nil ||
		!strings.Contains(err.Error(), `test.hcl:6:7: job "x" > group "g" > vault: unknown attribute "polices"; did you mean "policies"?`) {
		t.Errorf("have %v", err)
	}
}
