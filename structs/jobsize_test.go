package structs

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func sized(groups, tasks int) *Job {
	j := &Job{ID: "j"}
	for i := range groups {
		g := &TaskGroup{Name: fmt.Sprint("g", i), EphemeralDisk: &EphemeralDisk{SizeMB: 100_000}}
		for k := range tasks {
			g.Tasks = append(g.Tasks, &Task{Name: fmt.Sprint("t", k), Driver: "raw_exec"})
		}
		j.TaskGroups = append(j.TaskGroups, g)
	}
	return j
}

// TestCheckSize: what is at its limit is let through, and one more is not, by Validate too.
func TestCheckSize(t *testing.T) {
	f := func(j *Job, want string) {
		t.Helper()
		err := j.CheckSize(0)
		canonical := j.Copy()
		canonical.Canonicalize()
		if want == "" {
			if problems := canonical.Validate(); err != nil || len(problems) > 0 {
				t.Errorf("%v, %v; want none", err, problems)
			}
			return
		}
		if !errors.Is(err, ErrBadRequest) || !strings.Contains(err.Error(), want) || len(err.Error()) > MaxErrorBytes {
			t.Errorf("%.300v, want %s", err, want)
		}
		if problems := canonical.Validate(); len(problems) != 1 || !strings.Contains(problems[0].Text, want) {
			t.Errorf("it is valid but for %d problems, want one with %s", len(problems), want)
		}
	}
	f(sized(MaxJobGroups, 1), "")
	f(sized(MaxJobGroups+1, 1), "at most 1000 groups, not 1001")
	f(sized(1, MaxGroupTasks), "")
	f(sized(1, MaxGroupTasks+1), "at most 250 tasks, not 251")
	f(sized(MaxJobTasks/100, 100), "")
	f(sized(MaxJobTasks/100+1, 100), "at most 5000 tasks in all groups together, not 5100")
	j := sized(2, 2)
	third := MaxJobMeta / 4
	j.Meta = map[string]string{"k": strings.Repeat("m", third-1)}
	j.TaskGroups[0].Meta = map[string]string{"k": strings.Repeat("m", third-1)}
	j.TaskGroups[1].Tasks[0].Meta = map[string]string{"k": strings.Repeat("m", third-1)}
	j.TaskGroups[1].Tasks[1].Meta = map[string]string{"k": strings.Repeat("m", third-1)}
	f(j, "")
	j.Meta["l"] = ""
	f(j, "at most 1048576 bytes in the job, its groups and tasks together, not 1048577")
}

// TestSize: it is near what the job takes as JSON without what is empty, and ends soon above the limit.
func TestSize(t *testing.T) {
	j := sized(3, 3)
	before := j.Size(1 << 30)
	j.TaskGroups[1].Tasks[1].Env = map[string]string{"K": strings.Repeat("v", 10_000)}
	j.TaskGroups[2].Tasks[0].Config = map[string]any{"args": []any{strings.Repeat("a", 10_000), 1, true, nil}}
	j.TaskGroups[0].Tasks[0].Templates = []*Template{{EmbeddedTmpl: strings.Repeat("t", 10_000)}}
	if grown := j.Size(1<<30) - before; grown < 30_000 || grown > 31_000 {
		t.Errorf("30,000 bytes more make it %d larger", grown)
	}
	raw, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	if size := j.Size(1 << 30); size > len(raw) {
		t.Errorf("it is %d, more than the %d of its JSON", size, len(raw))
	}
	if err := j.CheckSize(20_000); !errors.Is(err, ErrBadRequest) || !strings.Contains(err.Error(), "more than 20000 bytes") {
		t.Errorf("%v, want that it is too large", err)
	}
	if err := j.CheckSize(j.Size(1 << 30)); err != nil {
		t.Error(err)
	}
}

// TestShortErrors: whatever is quoted, an error is short, in whole characters, and says that it was cut.
func TestShortErrors(t *testing.T) {
	for n := range 20 {
		got := Clip("aéé€€x", n)
		if len(got) > max(n, len("…")) || !utf8.ValidString(got) || n >= len("aéé€€x") && got != "aéé€€x" {
			t.Errorf("at most %d: %q", n, got)
		}
	}
	if got := Clip(strings.Repeat("€", 1000), 10); got != "€€…" {
		t.Errorf("%q", got)
	}
	long := strings.Repeat("n", 1<<20)
	for _, change := range []func(j *Job){
		func(j *Job) { j.ID = long },
		func(j *Job) { j.Name, j.Region, j.NodePool, j.Type, j.Namespace = long, long, long, long, long },
		func(j *Job) { j.TaskGroups[0].Name = long },
		func(j *Job) { j.TaskGroups[0].Tasks[0].Name = long },
		func(j *Job) { j.TaskGroups[0].Tasks[0].Driver = "" },
	} {
		j := sized(1000, 2)
		change(j)
		j.TaskGroups[1].Tasks[0].Name = j.TaskGroups[1].Tasks[1].Name
		for _, g := range j.TaskGroups[500:] {
			g.Name = "again"
		}
		j.Canonicalize()
		problems := j.Validate()
		if err := problems.Err(); err == nil || len(err.Error()) > MaxErrorBytes {
			t.Errorf("%d bytes: %.200v", len(err.Error()), err)
		}
		for _, p := range problems {
			if len(p.String()) > MaxErrorBytes {
				t.Errorf("a problem has %d bytes: %.200s", len(p.String()), p)
			}
		}
	}
}

func TestClipLines(t *testing.T) {
	f := func(lines []string, most int, want string) {
		t.Helper()
		if got := ClipLines(lines, "\n", most); got != want || len(got) > most {
			t.Errorf("%q, want %q", got, want)
		}
	}
	f([]string{"a", "b"}, 100, "\na\nb")
	f([]string{"a"}, 100, "\na")
	f([]string{strings.Repeat("a", 100)}, 20, "\n"+strings.Repeat("a", 16)+"…")
	f([]string{strings.Repeat("a", 20), strings.Repeat("b", 20), "c", "d"}, 60, "\n"+strings.Repeat("a", 20)+"\n… and 3 more errors")
	f([]string{strings.Repeat("a", 20), "b", strings.Repeat("c", 30), "d"}, 70, "\n"+strings.Repeat("a", 20)+"\nb\n… and 2 more errors")
	f(nil, 10, "")
}

func BenchmarkCheckSize(b *testing.B) {
	j := sized(1, 1)
	j.Canonicalize()
	for b.Loop() {
		if err := j.CheckSize(4 << 20); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidateSmall(b *testing.B) {
	j := sized(1, 1)
	j.Canonicalize()
	for b.Loop() {
		_ = j.Validate()
	}
}
