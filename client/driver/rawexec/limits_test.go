package rawexec

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/client/cgroup"
	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/structs"
)

// What a job and an operator say becomes the limits of a task.
func TestLimitsOfTask(t *testing.T) {
	const mb = 1 << 20
	const usual = 1024 // on machines of any size
	for _, c := range []struct {
		name string
		node int
		task int
		r    driver.Resources
		want cgroup.Limits
	}{
		{"the default", 0, 0, driver.Resources{MemoryMB: 300, CPUShares: 100}, cgroup.Limits{Memory: 300 * mb, CPU: 100, Pids: usual}},
		{"memory_max", 0, 0, driver.Resources{MemoryMB: 300, MemoryMaxMB: 500}, cgroup.Limits{Memory: 500 * mb, MemoryLow: 300 * mb, Pids: usual}},
		{"memory_max -1", 0, 0, driver.Resources{MemoryMB: 300, MemoryMaxMB: -1}, cgroup.Limits{Pids: usual}},
		{"the node's", 50, 0, driver.Resources{}, cgroup.Limits{Pids: 50}},
		{"the task's", 50, 20, driver.Resources{}, cgroup.Limits{Pids: 20}},
		{"no more than the node's", 50, 100, driver.Resources{}, cgroup.Limits{Pids: 50}},
		{"none", -1, 0, driver.Resources{}, cgroup.Limits{}},
		{"none but the task's", -1, 7, driver.Resources{}, cgroup.Limits{Pids: 7}},
	} {
		l := &limiter{Limits: Limits{Parent: "p/agent", Pids: c.node}}
		got := l.forTask(&driver.TaskConfig{Resources: c.r}, &config{pidsLimit: c.task})
		if got == nil || got.Parent != "p/agent" || got.Limits != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		if got := l.forTask(&driver.TaskConfig{}, &config{cgroupV2: "mine"}); got != nil {
			t.Errorf("with cgroup_v2_override: %+v", got)
		}
	}
	for _, c := range []struct{ node, task, allowed int }{{50, 100, 50}, {0, 5000, 1024}, {50, 50, 0}, {50, 0, 0}, {-1, 5000, 0}, {0, 1024, 0}} {
		l := &limiter{Limits: Limits{Parent: "p/agent", Pids: c.node}}
		cfg := &config{pidsLimit: c.task}
		notes := strings.Join(l.notes(l.forTask(&driver.TaskConfig{}, cfg), cfg), "; ")
		reported := "requests " + strconv.Itoa(c.task) + " processes and threads, and this node allows " + strconv.Itoa(c.allowed)
		if lowered := c.allowed > 0; lowered != (notes != "") || lowered && !strings.Contains(notes, reported) {
			t.Errorf("node %d, task %d: %q", c.node, c.task, notes)
		}
	}
	if _, err := parse(map[string]any{"command": "a", "pids_limit": -1}); err == nil || !strings.Contains(err.Error(), "pids_limit") {
		t.Errorf("pids_limit -1: %v", err)
	}
}

// A node says what it limits; if that is not all, it says why.
func TestLimitsOfNode(t *testing.T) {
	parent := "nomadish-test-" + strconv.Itoa(os.Getpid())
	for _, c := range []struct {
		name   string
		limits Limits
		reason string // empty: it is the machine's
	}{
		{"switched off", Limits{Reason: "because"}, "because"},
		{"nothing said", Limits{}, "no place"},
		{"bad place", Limits{Parent: "../up"}, "must be a path below"},
		{"this machine", Limits{Parent: parent}, ""},
	} {
		d := New(nil, Options{Enabled: true, Limits: c.limits})
		a := d.Fingerprint(t.Context()).Attributes
		limits, reason := a[structs.AttrRawExecLimits], a[structs.AttrRawExecLimitsReason]
		if c.reason != "" && (limits != structs.NoLimits || !strings.Contains(reason, c.reason)) {
			t.Errorf("%s: %q, %q", c.name, limits, reason)
		}
		if c.reason == "" && (limits == "" || (limits == "memory,pids,cpu") != (reason == "")) {
			t.Errorf("%s: %q, %q", c.name, limits, reason)
		}
		if a["driver.raw_exec"] != "1" {
			t.Errorf("%s: %v", c.name, a)
		}
		d.Close()
	}
	if a := New(nil, Options{}).Fingerprint(t.Context()).Attributes; len(a) > 0 {
		t.Errorf("switched off: %v", a)
	}
}
