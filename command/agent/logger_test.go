package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/command/agent/config"
)

// hostile is what a tenant may put into a name: a colour, a line of its own, a reversed direction.
const hostile = "a\x1b[31mb\n2026-01-01T00:00:00.000Z [INFO]  forged\u202ed\x00\u009b\u2028\"c\\"

// Each call of the logger is one line, in text and in JSON, and nothing in it is obeyed by a terminal.
func TestLogLinesArePrintable(t *testing.T) {
	log := func(l hclog.Logger) {
		l.Info("job "+hostile+" registered", "job", hostile, hostile, "value", "err", errors.New(hostile), "jobs", []string{hostile},
			"errs", []error{errors.New("x\x1b[0m")}, "quoted", hclog.Quote(hostile), "formatted", hclog.Fmt("%s", hostile), "odd"+hostile)
		l.Named(hostile).With("with", hostile).Info(hostile)
		l.StandardLogger(&hclog.StandardLoggerOptions{InferLevels: true}).Printf("[INFO] memberlist: %s joined", hostile)
		l.Info("plain", "a", "b c", "n", 3)
	}
	for _, asJSON := range []bool{false, true} {
		var b bytes.Buffer
		log(newLogger(&config.Config{Logging: config.Logging{LogLevel: "DEBUG", LogJSON: asJSON}}, &b))
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		if len(lines) != 4 {
			t.Errorf("json %v: %d lines of 4 calls:\n%s", asJSON, len(lines), b.String())
		}
		for _, line := range lines {
			for _, r := range line {
				if !unicode.IsPrint(r) {
					t.Errorf("json %v: %U in %q", asJSON, r, line)
					break
				}
			}
			if asJSON && !json.Valid([]byte(line)) {
				t.Errorf("no JSON: %q", line)
			}
		}
		if asJSON {
			var first map[string]any
			if err := json.Unmarshal([]byte(lines[0]), &first); err != nil || first["job"] != hostile || first["@message"] != "job "+hostile+" registered" {
				t.Errorf("%v: JSON says something else: %q", err, lines[0])
			}
		}
	}
}

func TestValuesOfSeveralLinesStayValues(t *testing.T) {
	var b bytes.Buffer
	l := newLogger(&config.Config{Logging: config.Logging{LogLevel: "DEBUG"}}, &b)
	says := func(want string) {
		t.Helper()
		_, got, _ := strings.Cut(strings.TrimSuffix(b.String(), "\n"), "agent: ")
		if got != want {
			t.Errorf("logged\n%s, want\n%s", got, want)
		}
		b.Reset()
	}
	l.Info("stopped", "error", errors.New("a \"b\"\nc=\nd\n"), "n", 3, "job", "x y")
	says(`stopped: error="a \"b\"\nc=\nd" n=3 job="x y"`)
	l.Info("stopped", "n", 3, "error", "a\nb")
	says(`stopped: n=3 error="a\nb"`)
	l.Info("stopped", "one", "a\nb", "two", "c\nd")
	says(`stopped: one="a\nb" two="c\nd"`)
	l.Info("a\n  | b\n  c=\nd")
	says(`a\n  | b c=\nd`)
	l.Info("größe ├─ é")
	says("größe ├─ é")
}
