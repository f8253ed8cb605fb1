package jobs

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// hostileName is what a tenant may name groups and tasks: their names have no control characters, but others that turn and hide
// text.
const hostileName = "a\u202eb\u200b\u2066c\ufeff\U000e0041"

// hostileText is what a tenant may write elsewhere, a job's ID and name included: a colour, a line of its own, a reversed direction, a control sequence in
// one character.
const hostileText = "a\x1b[31mb\nforged\u202ed\u009b2J\u200b"

// unprintable returns where a text has what a terminal obeys or hides, or a line that a name made; "" if it has nothing.
func unprintable(text string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "forged") {
			return line
		}
		for _, r := range strings.TrimSuffix(line, "\n") {
			if !unicode.IsPrint(r) && r != '\t' {
				return line
			}
		}
	}
	return ""
}

// A tenant's names reach the terminals of others, and the agent's log, in printable characters only.
func TestDoorNames(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "name = \"node-"+strings.NewReplacer("\x1b", `\u001b`, "\n", "").Replace(hostileText)+"\"\n")
	register := func(id string, cpu int, config map[string]any) {
		t.Helper()
		job := &structs.Job{
			ID: id, Name: hostileText, Type: structs.JobTypeService, Datacenters: []string{"*"}, Meta: map[string]string{"m": hostileText},
			TaskGroups: []*structs.TaskGroup{{Name: hostileName, Count: 1, Tasks: []*structs.Task{{
				Name: hostileName, Driver: "mock_driver", Config: config, Meta: map[string]string{"m": hostileText},
				Resources: &structs.Resources{CPU: cpu, MemoryMB: 10},
			}}}},
		}
		if _, err := a.API.Jobs().Register(t.Context(), &structs.JobRegisterRequest{Job: job}); err != nil {
			t.Fatal(err)
		}
	}
	placed, waits, fails := "placed"+hostileText, "waits"+hostileText, "fails"+hostileText
	register(placed, 20, map[string]any{"run_for": "1h"})
	register(waits, 100_000_000, map[string]any{"run_for": "1h"})
	register(fails, 20, map[string]any{"start_error": hostileText})
	alloc := a.WaitRunning(placed, 1, time.Minute)[0]
	failed := ""
	harness.Within(t, time.Minute, "the driver's error is in the task's events", func(ctx context.Context) error {
		allocs, _, err := a.API.Jobs().Allocations(ctx, fails, false, nil)
		if err != nil {
			return err
		}
		for _, x := range allocs {
			for _, state := range x.TaskStates {
				for _, event := range state.Events {
					if failed = x.ID; strings.Contains(event.DriverError+event.DisplayMessage, hostileText) {
						return nil
					}
				}
			}
		}
		return errors.New("no event has it")
	})
	harness.Within(t, time.Minute, "the job without room is in the queue", func(context.Context) error {
		_, _, err := a.API.Jobs().Explain(t.Context(), waits, "", nil)
		return err
	})
	file := a.JobFile("door", "job \"door\" {\n  meta {\n    m = \"\u202e\"\n  }\n  nonsense = \"\u202e\"\n}\n")
	for _, args := range [][]string{
		{"status"}, {"job", "status", placed}, {"job", "status", waits}, {"job", "explain", waits}, {"job", "allocs", placed},
		{"job", "history", "-p", placed}, {"job", "inspect", placed}, {"queue"}, {"queue", "-verbose"}, {"eval", "list"}, {"eval", "list", "-verbose"},
		{"alloc", "status"}, {"alloc", "status", "-verbose", alloc.ID}, {"alloc", "status", "-json", alloc.ID}, {"alloc", "status", failed}, {"job", "status", fails}, {"job", "run", "-detach", file}, {"eval", "status", alloc.EvalID},
		{"node", "status"}, {"node", "status", "-verbose", alloc.NodeID}, {"topology", "-all", "-verbose"}, {"server", "members"}, {"agent-info"},
		{"job", "status", "none" + hostileText}, {"alloc", "logs", "-job", waits}, {"alloc", "logs", alloc.ID, "x"}, {"job", "stop", placed},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), harness.Scaled(10*time.Second))
		cmd := exec.CommandContext(ctx, harness.Bin, args...)
		cmd.Env = append(os.Environ(), "NOMADISH_ADDR="+a.HTTP)
		var out, errOut strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errOut
		_ = cmd.Run() // refusals are looked at too
		cancel()
		if out.Len()+errOut.Len() == 0 {
			t.Errorf("nomadish %q printed nothing", args)
		}
		for _, text := range []string{out.String(), errOut.String()} {
			if line := unprintable(text); line != "" {
				t.Errorf("nomadish %q: %q", args, line)
			}
		}
	}
	log := a.Log.Tail(1 << 20)
	if !strings.Contains(log, `forged\u202ed`) {
		t.Errorf("the log names none of them:\n%s", log)
	}
	if line := unprintable(log); line != "" {
		t.Errorf("the agent's log: %q", line)
	}
}
