package jobspec

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/nomadish/nomadish/command/jobspec/hclfile"
	"github.com/nomadish/nomadish/structs"
)

// Whatever the bytes, Parse gives a job that may be stored, or problems.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*.hcl", "testdata/good/*.hcl"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(src)
		}
	}
	limits := hclfile.Limits{FileBytes: 10_000, ValueBytes: 10_000, Nesting: 50, Blocks: 100}
	f.Fuzz(func(t *testing.T, src []byte) {
		job, warnings, err := Parse("fuzz.hcl", src, Options{Options: hclfile.Options{Limits: limits}})
		if err != nil {
			var problems hclfile.Problems
			if job != nil || !errors.As(err, &problems) || len(problems) == 0 {
				t.Fatalf("job %v beside %T %v", job, err, err)
			}
			return
		}
		_ = warnings.Error()
		job.Canonicalize()
		if problems := job.Validate(); len(problems) > 0 {
			t.Fatalf("accepted, but: %v", problems)
		}
		roundTrip(t, job)
	})
}

// Whatever the bytes, a job that JSON gives can be made canonical and judged.
func FuzzJobJSON(f *testing.F) {
	job, _, err := Parse("seed.hcl", []byte(minimalSeed), Options{})
	if err != nil {
		f.Fatal(err)
	}
	raw, err := json.Marshal(job)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"ID":"x","TaskGroups":[{"Count":null,"Networks":[{"DynamicPorts":[{"Label":"a","Value":3}]}],"Tasks":[{"KillTimeout":"3s","Config":{"a":[1,2.5,null]}}]}]}`))
	f.Add([]byte(`{"TaskGroups":[null],"Payload":"AAA=","Update":{"Canary":1e2}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var job structs.Job
		if err := json.Unmarshal(raw, &job); err != nil {
			return
		}
		job.Canonicalize()
		again := job.Copy()
		again.Canonicalize()
		if again.SpecChanged(&job) {
			t.Fatal("making it canonical twice changes it")
		}
		_ = job.Warnings()
		if diff := job.Diff(again, true); diff.Type != structs.DiffTypeNone {
			t.Fatalf("differs from its copy: %+v", diff)
		}
		_ = job.Diff(nil, true)
		if job.Validate().Err() == nil {
			roundTrip(t, &job)
		}
	})
}

const minimalSeed = `job "x" {
  constraint {
    attribute = "${attr.x}"
    value     = "1"
  }
  group "g" {
    network {
      port "p" { static = 80 }
    }
    task "t" {
      driver = "raw_exec"
      config { command = "x" }
    }
  }
}`

func roundTrip(t *testing.T, job *structs.Job) {
	t.Helper()
	raw, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	var back structs.Job
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	if back.SpecChanged(job) {
		t.Fatalf("JSON changed the job:\n%s", raw)
	}
}
