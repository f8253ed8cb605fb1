package main

import (
	"fmt"
	"os"
	"strings"
)

// notEnded is the action of a test whose process ended before it did, or by what it had left behind.
const notEnded = "did not end"

// result is how a test ended, and its own lines.
type result struct {
	action string // pass, fail, skip or notEnded
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

// sometimes reports whether a test may pass or not.
func (l *lists) sometimes(name string) bool { return strings.HasPrefix(l.waiting[name], "sometimes:") }

// failed returns those that should have passed, and did not.
func (l *lists) failed(got map[string]result) []string {
	var out []string
	for _, name := range sorted(got) {
		if a := got[name].action; l.passing[name] && (a == "fail" || a == notEnded) {
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
		case l.passing[name] && r.action == "pass", waits && (r.action != "pass" || l.sometimes(name)):
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
	text := fmt.Sprintf("%d of %d tests pass, %d fail, %d are skipped", n["pass"], len(got), n["fail"], n["skip"])
	if n := n[notEnded]; n > 0 {
		text += fmt.Sprintf(", %d did not end", n)
	}
	return text
}
