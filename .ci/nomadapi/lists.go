package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// result is how a test ended, and its own lines.
type result struct {
	action string // pass, fail or skip
	lines  []string
}

// lists is what the tests must come to.
type lists struct {
	passing map[string]bool
	waiting map[string]string // what each waits for
}

func readLists(passing, waiting string) (*lists, error) {
	l := &lists{passing: map[string]bool{}, waiting: map[string]string{}}
	read := func(file string, add func(name, rest string) error) error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			name, rest, _ := strings.Cut(line, " ")
			if err := add(name, strings.TrimSpace(rest)); err != nil {
				return fmt.Errorf("%s:%d: %s: %w", file, i+1, name, err)
			}
		}
		return nil
	}
	if err := read(passing, func(name, rest string) error {
		if rest != "" || l.passing[name] {
			return fmt.Errorf("want the name of one test a line, each once")
		}
		l.passing[name] = true
		return nil
	}); err != nil {
		return nil, err
	}
	return l, read(waiting, func(name, rest string) error {
		if rest == "" || l.passing[name] || l.waiting[name] != "" {
			return fmt.Errorf("want a test and what it waits for, each once, and in one of the lists only")
		}
		l.waiting[name] = rest
		return nil
	})
}

// failed returns those that should have passed, and did not.
func (l *lists) failed(got map[string]result) []string {
	var out []string
	for _, name := range sorted(got) {
		if l.passing[name] && got[name].action == "fail" {
			out = append(out, name)
		}
	}
	return out
}

// judge returns what differs from the lists, a text each.
func (l *lists) judge(got map[string]result) []string {
	var wrong []string
	for _, name := range sorted(got) {
		r := got[name]
		switch why, waits := l.waiting[name]; {
		case l.passing[name] && r.action == "pass", waits && (r.action != "pass" || strings.HasPrefix(why, "sometimes:")):
		case l.passing[name]:
			wrong = append(wrong, fmt.Sprintf("%s: %s, and must pass\n%s", name, r.action, strings.Join(r.lines, "")))
		case waits:
			wrong = append(wrong, fmt.Sprintf("%s: passes now (it waited for: %s): move it to the list of those that pass", name, why))
		case r.action == "pass":
			wrong = append(wrong, fmt.Sprintf("%s: passes and is in no list: add it to that of those that pass", name))
		default:
			wrong = append(wrong, fmt.Sprintf("%s: %s, and is in no list: mend it, or add it to that of those that wait, with what for\n%s",
				name, r.action, strings.Join(r.lines, "")))
		}
	}
	for _, name := range sorted(l.passing) {
		if _, ran := got[name]; !ran {
			wrong = append(wrong, name+": is in the list of those that pass, and did not run")
		}
	}
	for _, name := range sorted(l.waiting) {
		if _, ran := got[name]; !ran {
			wrong = append(wrong, name+": is in the list of those that wait, and did not run")
		}
	}
	return wrong
}

func count(got map[string]result) string {
	n := map[string]int{}
	for _, r := range got {
		n[r.action]++
	}
	return fmt.Sprintf("%d of %d tests pass, %d fail, %d are skipped", n["pass"], len(got), n["fail"], n["skip"])
}

// parse reads what test2json printed. Tests within tests count as part of theirs. A test that never ended has failed.
func parse(text []byte) map[string]result {
	got := map[string]result{}
	for line := range bytes.Lines(text) {
		var e struct{ Action, Test, Output string }
		if json.Unmarshal(line, &e) != nil || e.Test == "" {
			continue
		}
		name, _, within := strings.Cut(e.Test, "/")
		r := got[name]
		switch e.Action {
		case "run":
			if !within {
				r = result{action: "fail"}
			}
		case "pass", "fail", "skip":
			if !within {
				r.action = e.Action
			}
		case "output":
			if len(r.lines) < 60 {
				r.lines = append(r.lines, e.Output)
			}
		}
		got[name] = r
	}
	return got
}
