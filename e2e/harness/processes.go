package harness

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// PIDs reads the PID that each of a job's tasks wrote to its log.
func (a *Agent) PIDs(allocs []*structs.AllocListStub) map[string]int {
	a.T.Helper()
	out := map[string]int{}
	for _, alloc := range allocs {
		Within(a.T, 10*time.Second, "the log of "+alloc.ID, func(ctx context.Context) error {
			body, err := a.API.AllocFS().Cat(ctx, alloc.ID, "alloc/logs/t.stdout.0")
			if err != nil {
				return err
			}
			defer body.Close() //nolint:errcheck // read only
			var word string
			var pid int
			if _, err := fmt.Fscan(body, &word, &pid); err != nil {
				return err
			}
			out[alloc.ID] = pid
			return nil
		})
	}
	return out
}

// ProcessesOf finds the processes whose command line or environment names dir.
func ProcessesOf(dir string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		for _, file := range []string{"cmdline", "environ"} {
			if text, err := os.ReadFile(filepath.Join("/proc", e.Name(), file)); err == nil && bytes.Contains(text, []byte(dir)) {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}

// SleepTasks counts an agent's processes that are `sleep 1000`.
func SleepTasks(a *Agent) int {
	n := 0
	for _, pid := range ProcessesOf(a.Dir) {
		if text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline")); err == nil && string(text) == "sleep\x001000\x00" {
			n++
		}
	}
	return n
}
