package e2e

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/nomadish/nomadish/structs"
)

// hostileName is what a tenant may name things: a colour, a line of its own, a reversed direction, a control sequence in one
// character.
const hostileName = "a\x1b[31mb\nforged\u202ed\u009b2J\u200b"

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
	a := startDev(t, "name = \"node-"+strings.NewReplacer("\x1b", `\u001b`, "\n", `\n`).Replace(hostileName)+"\"\n")
	job := func(id string, cpu int) *structs.Job {
		return &structs.Job{
			ID: id, Name: hostileName, Type: structs.JobTypeService, Datacenters: []string{"*"}, Meta: map[string]string{hostileName: hostileName},
			TaskGroups: []*structs.TaskGroup{{Name: hostileName, Count: 1, Tasks: []*structs.Task{{
				Name: "t" + strings.ReplaceAll(hostileName, "/", ""), Driver: "mock_driver", Config: map[string]any{"run_for": "1h"},
				Resources: &structs.Resources{CPU: cpu, MemoryMB: 10},
			}}}},
		}
	}
	placed, waits := "placed"+hostileName, "waits"+hostileName
	for id, cpu := range map[string]int{placed: 20, waits: 100_000_000} {
		if _, err := a.api.JobRegister(t.Context(), &structs.JobRegisterRequest{Job: job(id, cpu)}); err != nil {
			t.Fatal(err)
		}
	}
	alloc := a.running(placed, 1, time.Minute)[0]
	within(t, time.Minute, "the job without room is in the queue", func(context.Context) error {
		_, err := a.api.JobExplain(t.Context(), waits, "", nil)
		return err
	})
	for _, args := range [][]string{
		{"status"}, {"job", "status", placed}, {"job", "status", waits}, {"job", "explain", waits}, {"job", "allocs", placed},
		{"job", "history", "-p", placed}, {"job", "inspect", placed}, {"queue"}, {"queue", "-verbose"}, {"eval", "list"}, {"eval", "list", "-verbose"},
		{"alloc", "status"}, {"alloc", "status", "-verbose", alloc.ID}, {"alloc", "status", "-json", alloc.ID}, {"eval", "status", alloc.EvalID},
		{"node", "status"}, {"node", "status", "-verbose", alloc.NodeID}, {"topology", "-all", "-verbose"}, {"server", "members"}, {"agent-info"},
		{"job", "status", "none" + hostileName}, {"alloc", "logs", "-job", waits}, {"alloc", "logs", alloc.ID, "x"}, {"job", "stop", placed},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, *bin, args...)
		cmd.Env = append(os.Environ(), "NOMADISH_ADDR="+a.http)
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
	log := a.log.tail(1 << 20)
	if !strings.Contains(log, `a\x1b[31mb\nforged`) {
		t.Errorf("the log names none of it:\n%s", log)
	}
	if line := unprintable(log); line != "" {
		t.Errorf("the agent's log: %q", line)
	}
}
