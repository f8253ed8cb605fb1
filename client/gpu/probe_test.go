package gpu

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/client/gpu/nvml"
)

// script is a probe that is a shell script: what a wrong program does.
func script(text string) *Probe {
	return &Probe{Program: func() ([]byte, error) { return []byte("#!/bin/sh\n" + text), nil }}
}

func TestProbeRefusesWhatIsNoProbe(t *testing.T) {
	f := func(what string, p *Probe, want string) {
		t.Helper()
		s, err := p.Look(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want %q", what, s, err, want)
		}
		p.Close()
		if p.last != nil {
			<-p.last.ended
		}
	}
	f("no program", &Probe{Program: func() ([]byte, error) { return nil, ErrNoProbe }}, "make build")
	f("not a program", &Probe{Program: func() ([]byte, error) { return []byte("?"), nil }}, "start the GPU probe")
	f("a program that cannot be read again", script("echo {}\n"), "")
}

func TestAnswers(t *testing.T) {
	f := func(line string, ok bool) {
		t.Helper()
		if s, err := decode([]byte(line)); (err == nil) != ok || ok && s == nil {
			t.Errorf("%q: %+v, %v", line, s, err)
		}
	}
	f(`{"Protocol":1,"GPUs":[{"UUID":"a"}]}`, true)
	f(`{"Protocol":2}`, false)
	f(`{}`, false)
	f(`null`, false)
	f(``, false)
	f(`{"Protocol":1`, false)
	f(`{"Protocol":1,"GPUs":{}}`, false)
}

// TestEmbeddedProbe: with or without the probe the package is built, and says which.
func TestEmbeddedProbe(t *testing.T) {
	_, absent := os.Stat("bin/probe.gz")
	program, err := Program()
	switch {
	case absent != nil && !errors.Is(err, ErrNoProbe):
		t.Errorf("built without the probe: %v", err)
	case absent == nil && (err != nil || !strings.HasPrefix(string(program), "\x7fELF")):
		t.Errorf("built with the probe: %d bytes, %v", len(program), err)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"Protocol":1,"GPUs":[{"UUID":"a","Name":"b","BusID":"0000:01:00.0","MIG":true,"Slices":[{"UUID":"s"}]}],"Events":[{"Xid":3}]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		s, err := decode(line)
		if (s == nil) == (err == nil) || s != nil && s.Protocol != nvml.Protocol {
			t.Errorf("%q: %+v, %v", line, s, err)
		}
	})
}
