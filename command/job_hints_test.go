package command

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

func TestJobPlanSuggestsTheSameFlags(t *testing.T) {
	f := newFake(t).on("PUT /v1/job/web/plan", &structs.JobPlanReply{JobModifyIndex: 12})
	text := `variable "a" {}
variable "b" {}
job "web" {
  group "g" {
    task "t" {
      driver = "mock_driver"
      env { A = "${var.a}${var.b}" }
    }
  }
}`
	path, vars := file(t, "a b.hcl", text), file(t, "v.hcl", `b = "x"`)
	got := f.run(t, "plan", "-namespace", "lab", "-var", "a=it's $HOME", "-var-file", vars, path)
	wants(t, got.out, "nomadish job run -check-index 12 -namespace lab -var 'a=it'\\''s $HOME' -var-file "+vars+" '"+path+"'\n")
	got = f.run(t, "plan", "-var", "a=b", "-var", "b=c", path)
	wants(t, got.out, "-check-index 12 -var a=b -var b=c '"+path+"'\n")
}

func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{
		"": "''", "a=b": "a=b", "dir/x-1_2.hcl": "dir/x-1_2.hcl", "a b": "'a b'", "$x": "'$x'", "a'b": `'a'\''b'`, "~": "'~'", "ü": "'ü'",
		"a\nb": `$'a\nb'`, "it's\t\\\x1b[31m": `$'it\'s\t\\\x1b[31m'`, "a\u202eü": `$'a\xe2\x80\xaeü'`,
	} {
		if got := shellWord(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}

func TestJobScaleNamesTheGroups(t *testing.T) {
	f := cluster(t).on("PUT /v1/job/web/scale", refusal{400, "no such group"})
	got := f.run(t, "job", "scale", "web", "nogroup", "2")
	if got.code != exitFailed {
		t.Errorf("exit code %d", got.code)
	}
	wants(t, got.err, `job "web" has no group "nogroup": name one of "front"`)
	wants(t, f.run(t, "job", "scale", "web", "front", "2").err, "no such group") // another reason stays
	for line, want := range map[string]string{
		"scale": "a job, its group and a count are needed", "scale web": `the count is missing; job "web" has the group "front" (2 now)`,
		"scale web front": `the count is missing; job "web" has the group "front" (2 now)`, "scale web many": `count "many": a number from 0 is needed`,
		"scale web -1": "a count, must be 0 or more", "scale nojob": `no job is named "nojob"`,
	} {
		if got := f.run(t, append([]string{"job"}, strings.Fields(line)...)...); got.code != exitFailed || !strings.Contains(got.err, want) {
			t.Errorf("%s: exit code %d, %q", line, got.code, got.err)
		}
	}
}

func TestJobRunOfADirectorySaysItOnce(t *testing.T) {
	dir := t.TempDir()
	got := newFake(t).run(t, "run", dir)
	if got.code != exitFailed || strings.Count(got.err, dir) != 1 {
		t.Errorf("exit code %d, stderr %q", got.code, got.err)
	}
	wants(t, got.err, "is a directory")
}

// TestServersRefusalsHavePlaces: what only a server can refuse is said with its place in the file too.
func TestServersRefusalsHavePlaces(t *testing.T) {
	path := file(t, "web.nomad.hcl", `job "web" {
  group "a: b" {
    gang {}
    topology { level = "rak" }
    task "t" {
      driver = "mock_driver"
      resources {
        device "gpu" {
          topology { level = "sokcet" }
        }
      }
    }
  }
}`)
	group := `job "web" > group "a: b" > topology: level: unknown level "rak"`
	device := `job "web" > group "a: b" > task "t" > resources > device "gpu" > topology: level: unknown level "sokcet"`
	f := newFake(t).on("PUT /v1/jobs", refusal{400, group}, refusal{400, "2 problems:\n  * " + group + "\n  * " + device},
		refusal{400, "job \"web\": region \"x\""}, refusal{400, "all is wrong"}, refusal{500, group})
	at := func(line, text string) string { return path + ":" + line + ": " + text + "\n" }
	for _, want := range []string{
		at("4:16", group), "2 problems:\n" + at("4:16", group) + at("9:22", device), at("1:1", "job \"web\": region \"x\""),
		"all is wrong (HTTP 400)\n", group + " (HTTP 500)\n",
	} {
		if got := f.run(t, "job", "run", path); got.code != exitFailed || got.err != want {
			t.Errorf("exit code %d, stderr\n%s\nwant\n%s", got.code, got.err, want)
		}
	}
	f.on("PUT /v1/job/web/plan", refusal{400, group})
	if got := f.run(t, "job", "plan", path); got.code != exitPlanError || got.err != at("4:16", group) {
		t.Errorf("plan: exit code %d, stderr\n%s", got.code, got.err)
	}
	f.on("PUT /v1/validate/job", &structs.JobValidateReply{Error: "x", ValidationErrors: []string{"2 problems:\n  * " + group + "\n  * " + device}})
	got := f.run(t, "job", "validate", path)
	if got.code != exitFailed {
		t.Errorf("validate: exit code %d", got.code)
	}
	wants(t, got.err, "* "+at("4:16", group), "* "+at("9:22", device))
}
