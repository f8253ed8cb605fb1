package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// died is what test2json of Go 1.26 printed of tests in which one fails after its end. It says that TestServes failed, which
// ran then.
const died = `{"Action":"start"}
{"Action":"run","Test":"TestFirst"}
{"Action":"output","Test":"TestFirst","Output":"=== RUN   TestFirst\n"}
{"Action":"run","Test":"TestFirst/part"}
{"Action":"output","Test":"TestFirst/part","Output":"=== RUN   TestFirst/part\n"}
{"Action":"output","Test":"TestFirst/part","Output":"--- PASS: TestFirst/part (0.00s)\n"}
{"Action":"pass","Test":"TestFirst/part"}
{"Action":"output","Test":"TestFirst","Output":"--- PASS: TestFirst (0.00s)\n"}
{"Action":"pass","Test":"TestFirst"}
{"Action":"run","Test":"TestParallel"}
{"Action":"output","Test":"TestParallel","Output":"=== RUN   TestParallel\n"}
{"Action":"output","Test":"TestParallel","Output":"=== PAUSE TestParallel\n"}
{"Action":"pause","Test":"TestParallel"}
{"Action":"run","Test":"TestBroken"}
{"Action":"output","Test":"TestBroken","Output":"=== RUN   TestBroken\n"}
{"Action":"output","Test":"TestBroken","Output":"    a_test.go:12: broken because\n"}
{"Action":"output","Test":"TestBroken","Output":"--- FAIL: TestBroken (0.00s)\n"}
{"Action":"fail","Test":"TestBroken"}
{"Action":"run","Test":"TestLock"}
{"Action":"output","Test":"TestLock","Output":"=== RUN   TestLock\n"}
{"Action":"output","Test":"TestLock","Output":"--- PASS: TestLock (0.00s)\n"}
{"Action":"pass","Test":"TestLock"}
{"Action":"run","Test":"TestServes"}
{"Action":"output","Test":"TestServes","Output":"=== RUN   TestServes\n"}
{"Action":"output","Test":"TestServes","Output":"    a_test.go:21: serving\n"}
{"Action":"output","Test":"TestServes","Output":"panic: Fail in goroutine after TestLock has completed\n"}
{"Action":"output","Test":"TestServes","Output":"\n"}
{"Action":"output","Test":"TestServes","Output":"goroutine 24 [running]:\n"}
{"Action":"output","Test":"TestServes","Output":"testing.(*common).Fail(0x14d2dd8aa6c8)\n"}
{"Action":"fail","Test":"TestServes"}
`

func actions(got map[string]result) map[string]string {
	out := map[string]string{}
	for name, r := range got {
		out[name] = r.action
	}
	return out
}

// TestParseDied: a test whose process died under it has not ended, whatever test2json says, and the panic's reason is found.
func TestParseDied(t *testing.T) {
	want := map[string]string{
		"TestFirst": "pass", "TestParallel": notEnded, "TestBroken": "fail", "TestLock": notEnded, "TestServes": notEnded,
	}
	r := parse([]byte(died))
	if got := actions(r.got); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if !slices.Equal(r.blamed, []string{"TestLock"}) {
		t.Errorf("blamed are %q, want what the panic names", r.blamed)
	}
	want["TestLock"] = "pass"
	r = parse([]byte(strings.ReplaceAll(died, "panic: Fail in goroutine after TestLock has completed", "panic: no lease")))
	if got := actions(r.got); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if !slices.Equal(r.blamed, []string{"TestServes"}) {
		t.Errorf("blamed are %q, want what ran, as the panic names none", r.blamed)
	}
	r = parse([]byte(strings.ReplaceAll(died, "TestLock has", "TestLock/part has")))
	if !slices.Equal(r.blamed, []string{"TestLock"}) {
		t.Errorf("blamed are %q, want the test of the one that the panic names", r.blamed)
	}
}

// dying is tests of which one fails after its end while another runs, if both are in a process.
const dying = `package dying

import "testing"

var lease, lost = false, make(chan struct{})

func TestFirst(t *testing.T) {}

func TestParallel(t *testing.T) { t.Parallel() }

func TestBroken(t *testing.T) { t.Error("broken because") }

func TestLock(t *testing.T) {
	lease = true
	go func() { <-lost; t.Error("lease lost") }()
}

func TestServes(t *testing.T) {
	if lease {
		close(lost)
		select {}
	}
}

func TestBehind(t *testing.T) {}
`

// TestRoundsOfProcesses: a panic costs no result of any test.
func TestRoundsOfProcesses(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module dying\n", "dying_test.go": dying} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := &suite{dir: dir, bin: filepath.Join(dir, "dying.test"), env: os.Environ(), keep: io.Discard}
	compile := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", s.bin, ".")
	compile.Dir = dir
	if text, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	names, err := s.list(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		apart string
		said  bool
	}{{"", true}, {"TestLock", false}} {
		var out strings.Builder
		r := &rounds{test: s.test, out: &out, got: map[string]result{}}
		if err := r.all(t.Context(), names, func(name string) bool { return name == c.apart }, 4); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{
			"TestFirst": "pass", "TestParallel": "pass", "TestBroken": "fail", "TestLock": "pass", "TestServes": "pass", "TestBehind": "pass",
		}
		if got := actions(r.got); !maps.Equal(got, want) {
			t.Errorf("%q apart: %v, want %v", c.apart, got, want)
		}
		if said := strings.Contains(out.String(), "by themselves at the end: TestLock"); said != c.said {
			t.Errorf("%q apart: it said %q", c.apart, out.String())
		}
	}
}

// script is a tester whose process dies of some tests: each time they run if others do too.
type script struct {
	dies  map[string]bool
	calls [][]string
}

func (s *script) test(_ context.Context, names []string, _ int) (round, error) {
	s.calls = append(s.calls, names)
	r := round{got: map[string]result{}}
	for _, name := range names {
		if s.dies[name] && len(names) > 1 {
			r.got[name], r.blamed = result{action: notEnded}, []string{name}
			break
		}
		r.got[name] = result{action: "pass"}
	}
	return r, nil
}

// TestRounds: each round goes on behind those that had ended, and what it died of runs at the end; the rounds are bounded.
func TestRounds(t *testing.T) {
	none := func(string) bool { return false }
	s := &script{dies: map[string]bool{"B": true, "D": true}}
	r := &rounds{test: s.test, out: io.Discard, got: map[string]result{}}
	if err := r.all(t.Context(), []string{"A", "B", "C", "D", "E", "F"}, none, 2); err != nil {
		t.Fatal(err)
	}
	if want := [][]string{{"A", "B", "C", "D", "E", "F"}, {"C", "D", "E", "F"}, {"E", "F"}, {"B"}, {"D"}}; !reflect.DeepEqual(s.calls, want) {
		t.Errorf("ran %q, want %q", s.calls, want)
	}
	var many []string
	s = &script{dies: map[string]bool{}}
	for i := range maxRounds + 3 {
		many = append(many, fmt.Sprint("T", i))
		s.dies[many[i]] = true
	}
	r = &rounds{test: s.test, out: io.Discard, got: map[string]result{}}
	err := r.all(t.Context(), many, none, 2)
	if err == nil || !strings.Contains(err.Error(), "6 of 9 tests did not end (T0 T1 T2 T3 T4 T5), and 3 did not run (T6 T7 T8)") {
		t.Errorf("%v, want an error that names those that did not end and those that did not run", err)
	}
	if len(s.calls) != maxRounds {
		t.Errorf("%d rounds, want %d", len(s.calls), maxRounds)
	}
}

// TestRoundsStopped: at the limit what ended counts, and the rest is named; a process that ends before any test does is an error.
func TestRoundsStopped(t *testing.T) {
	limit := errors.New("stopped after the -limit of 4m0s")
	r := &rounds{out: io.Discard, got: map[string]result{}, test: func(context.Context, []string, int) (round, error) {
		return round{got: map[string]result{"A": {action: "pass"}, "B": {action: notEnded}}, blamed: []string{"B"}}, limit
	}}
	err := r.all(t.Context(), []string{"A", "B", "C"}, func(name string) bool { return name == "C" }, 2)
	if !errors.Is(err, limit) || !strings.Contains(err.Error(), "1 of 3 tests did not end (B), and 1 did not run (C)") {
		t.Errorf("%v, want the limit, and what did not run", err)
	}
	if r.got["A"].action != "pass" {
		t.Errorf("what ended before the limit is %q", r.got["A"].action)
	}
	r.test = func(context.Context, []string, int) (round, error) { return round{}, nil }
	r.got = map[string]result{}
	if err := r.all(t.Context(), []string{"A"}, func(string) bool { return false }, 2); err == nil || !strings.Contains(err.Error(), "(A)") {
		t.Errorf("%v, want an error that names A", err)
	}
}
