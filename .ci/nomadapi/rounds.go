package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// maxRounds bounds how often the tests that a panic left behind begin again.
const maxRounds = 6

// round is what one process of tests came to.
type round struct {
	got map[string]result
	// blamed are the tests that the process may have died of: those that its panic names, else those that ran then.
	blamed []string
}

// late matches the panic of a test that writes or fails after its end, from a goroutine that it left behind.
var late = regexp.MustCompile(`^panic: (?:Log|Fail) in goroutine after (\S+) has completed`)

// parse reads what test2json printed. Tests within tests count as part of theirs.
func parse(text []byte) round {
	r := round{got: map[string]result{}}
	var running, named []string
	reported := map[string]bool{}
	without := func(from []string, name string) []string {
		return slices.DeleteFunc(from, func(s string) bool { return s == name })
	}
	for line := range bytes.Lines(text) {
		var e struct{ Action, Test, Output string }
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		if m := late.FindStringSubmatch(e.Output); m != nil {
			name, _, _ := strings.Cut(m[1], "/")
			named = append(without(named, name), name)
		}
		name, _, within := strings.Cut(e.Test, "/")
		if name == "" {
			continue
		}
		test := r.got[name]
		switch {
		case e.Action == "output":
			if len(test.lines) < 60 {
				test.lines = append(test.lines, e.Output)
			}
			if strings.HasPrefix(e.Output, "--- ") && strings.Contains(e.Output, ": "+name+" (") {
				reported[name] = true
			}
		case within:
		case e.Action == "run":
			test = result{action: notEnded}
			running = append(running, name)
		case e.Action == "cont":
			running = append(running, name)
		case e.Action == "pause":
			running = without(running, name)
		case e.Action == "pass", e.Action == "skip",
			// When the process dies test2json says of the test that it last heard of that it failed. What a test says of its
			// own end comes with a line of text.
			e.Action == "fail" && reported[name]:
			test.action = e.Action
			running = without(running, name)
		}
		r.got[name] = test
	}
	for _, name := range named {
		test := r.got[name]
		test.action, test.lines = notEnded, append(test.lines, "failed after its end, which ended all tests\n")
		r.got[name] = test
	}
	r.blamed = named
	if len(named) == 0 {
		r.blamed = running
	}
	return r
}

// tester runs tests in a process of their own and returns what they came to, as far as they came if it returns an error.
type tester func(ctx context.Context, names []string, parallel int) (round, error)

// rounds runs tests so that one that ends their process costs no more than time.
type rounds struct {
	test tester
	out  io.Writer
	got  map[string]result // so far
}

// all runs tests, many at once, and those apart by themselves at the end. If their process dies, the tests that had not
// ended begin again, without those that it may have died of: they run by themselves at the end, too.
func (r *rounds) all(ctx context.Context, names []string, apart func(string) bool, parallel int) error {
	var left, alone []string
	for _, name := range names {
		if apart(name) {
			alone = append(alone, name)
		} else {
			left = append(left, name)
		}
	}
	for n := 1; len(left) > 0; n++ {
		if n > maxRounds {
			return fmt.Errorf("their process died in each of %d rounds: %w", maxRounds, r.missing(names))
		}
		did, err := r.run(ctx, left, parallel)
		if err != nil {
			return errors.Join(err, r.missing(names))
		}
		rest := slices.DeleteFunc(slices.Clone(left), func(name string) bool {
			return r.ended(name) || slices.Contains(did.blamed, name)
		})
		if len(rest) == len(left) {
			return fmt.Errorf("their process ended before any test did: %w", r.missing(names))
		}
		blamed := slices.DeleteFunc(slices.Clone(left), func(name string) bool { return !slices.Contains(did.blamed, name) })
		if len(rest)+len(blamed) > 0 {
			fmt.Fprintf(r.out, "round %d: the process of the tests died; %d begin again, and by themselves at the end: %s\n",
				n, len(rest), strings.Join(blamed, " "))
		}
		left, alone = rest, append(alone, blamed...)
	}
	return r.alone(ctx, alone, names)
}

// alone runs tests one by one, each in its own process. Names are all that must have run by the end.
func (r *rounds) alone(ctx context.Context, tests, names []string) error {
	for _, name := range tests {
		if _, err := r.run(ctx, []string{name}, 1); err != nil {
			return errors.Join(err, r.missing(names))
		}
	}
	return nil
}

func (r *rounds) run(ctx context.Context, names []string, parallel int) (round, error) {
	did, err := r.test(ctx, names, parallel)
	for name, test := range did.got {
		r.got[name] = test
	}
	return did, err
}

func (r *rounds) ended(name string) bool {
	test, ran := r.got[name]
	return ran && test.action != notEnded
}

// missing names the tests that did not run or did not end.
func (r *rounds) missing(names []string) error {
	var open, never []string
	for _, name := range names {
		if _, ran := r.got[name]; !ran {
			never = append(never, name)
		} else if !r.ended(name) {
			open = append(open, name)
		}
	}
	return fmt.Errorf("%d of %d tests did not end (%s), and %d did not run (%s)",
		len(open), len(names), strings.Join(open, " "), len(never), strings.Join(never, " "))
}
