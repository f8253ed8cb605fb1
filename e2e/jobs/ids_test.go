package jobs

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// jobIDs are IDs that Nomad takes, each with a character or a form that a path, a shell, HCL or a regular expression knows.
var jobIDs = []string{
	"a/b", "/lead", "trail/", "a//b", ".", "..", "a/..", "../up", "a%b", "a%2Fb", "%", "a?b=c", "a#b", "a&b;c", "a+b", "a:b", "*", "a,b",
	`q"uote`, "it's", `back\slash`, "<b>", "$HOME", "${x}", "a@b[1]{2}", "`x`", "~", "ü-日本-🚀", "a\u00a0b", "é-e\u0301",
	"a\nb", "a\tb", "a\x1b[31mb", "a\u0085b", "a\x7fb", "\r\nforged:x", "a\u202eb\u200b", "job-id/with\\troublesome:characters\n?&字",
	"x/summary", "x/allocations", "x/plan", "x/versions/1/tag", "x/scale", "-dash", "--help", "42", "null", "parse",
}

// TestJobIDs registers, reads, scales, follows and stops jobs whose IDs hold any character, through the command line, the
// HTTP API and the official client.
func TestJobIDs(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	ids := make(chan string)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for id := range ids {
				if err := jobIDWorks(t.Context(), a, id); err != nil {
					t.Errorf("%q: %v", id, err)
				}
			}
		})
	}
	for _, id := range jobIDs {
		ids <- id
	}
	close(ids)
	workers.Wait()
	for _, id := range []string{"", "a b", "a\x00b", strings.Repeat("x", 513)} {
		if _, _, err := a.Nomad.Jobs().Register(harness.OfficialJob(id, "exit 0"), nil); err == nil {
			t.Errorf("%q is registered", id)
		}
	}
}

// jobIDWorks takes one job through its life. The official client sends IDs escaped.
func jobIDWorks(ctx context.Context, a *harness.Agent, id string) error {
	ctx, cancel := context.WithTimeout(ctx, harness.Scaled(30*time.Second))
	defer cancel()
	jobs := a.Nomad.Jobs()
	events, err := a.Nomad.EventStream().Stream(ctx, map[nomad.Topic][]string{nomad.TopicJob: {id}}, 0, nil)
	if err != nil {
		return fmt.Errorf("events: %w", err)
	}
	job := harness.OfficialJob(id, "sleep 1000")
	job.TaskGroups[0].Count = harness.Ptr(0)
	if _, _, err := jobs.Register(job, nil); err != nil {
		return fmt.Errorf("register: %w", err)
	}
	if err := jobEvent(ctx, events, id); err != nil {
		return err
	}
	if _, _, err := jobs.Scale(id, "g", harness.Ptr(1), "", false, nil, nil); err != nil {
		return fmt.Errorf("scale: %w", err)
	}
	alloc, err := jobIDRuns(ctx, a, id)
	if err != nil {
		return err
	}
	if err := jobIDReads(a, id); err != nil {
		return err
	}
	if want := id + ".g[0]"; alloc.JobID != id || alloc.Name != want {
		return fmt.Errorf("its allocation is %q of the job %q, not %q", alloc.Name, alloc.JobID, want)
	}
	for _, command := range []string{"status", "explain", "allocs", "history", "inspect"} {
		out, code := a.CLI("job", command, "--", id)
		if line := unprintable(out); code != 0 || line != "" {
			return fmt.Errorf("job %s: exit code %d, unprintable in %q: %s", command, code, line, out)
		}
	}
	if out, code := a.CLI("job", "stop", "-detach", "-purge", "--", id); code != 0 {
		return fmt.Errorf("job stop: %s", out)
	}
	if job, _, err := jobs.Info(id, nil); err == nil {
		return fmt.Errorf("the job %q is there after it was purged", *job.ID)
	}
	return nil
}

// jobEvent waits for an event of the job, and takes none of another.
func jobEvent(ctx context.Context, events <-chan *nomad.Events, id string) error {
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("events: %w", ctx.Err())
		case batch, open := <-events:
			if !open || batch.Err != nil {
				return fmt.Errorf("events: the stream ended: %+v", batch)
			}
			if len(batch.Events) == 0 {
				continue
			}
			if key := batch.Events[0].Key; key != id && id != "*" { // which, as a key, is every job
				return fmt.Errorf("events: one of %q came", key)
			}
			return nil
		}
	}
}

// jobIDRuns waits until the job's allocation runs.
func jobIDRuns(ctx context.Context, a *harness.Agent, id string) (*structs.AllocListStub, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		allocs, _, err := a.API.Jobs().Allocations(ctx, id, true, nil)
		if err != nil {
			return nil, fmt.Errorf("allocations: %w", err)
		}
		if len(allocs) == 1 && allocs[0].ClientStatus == structs.AllocClientRunning {
			return allocs[0], nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("it does not run: %d allocations", len(allocs))
		case <-tick.C:
		}
	}
}

// jobIDReads reads a running job in all ways there are.
func jobIDReads(a *harness.Agent, id string) error {
	jobs := a.Nomad.Jobs()
	info, _, err := jobs.Info(id, nil)
	if err != nil {
		return fmt.Errorf("info: %w", err)
	}
	if *info.ID != id {
		return fmt.Errorf("info: it is of %q", *info.ID)
	}
	if _, _, err := jobs.Plan(info, true, nil); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	if versions, _, _, err := jobs.Versions(id, false, nil); err != nil || len(versions) == 0 || *versions[0].ID != id {
		return fmt.Errorf("versions: %d of them, %w", len(versions), err)
	}
	if summary, _, err := jobs.Summary(id, nil); err != nil || summary.JobID != id {
		return fmt.Errorf("summary: %+v, %w", summary, err)
	}
	if evals, _, err := jobs.Evaluations(id, nil); err != nil || len(evals) == 0 || evals[0].JobID != id {
		return fmt.Errorf("evaluations: %d of them, %w", len(evals), err)
	}
	if status, _, err := jobs.ScaleStatus(id, nil); err != nil || status.JobID != id {
		return fmt.Errorf("scale status: %+v, %w", status, err)
	}
	if list, _, err := jobs.List(&nomad.QueryOptions{Prefix: id}); err != nil || len(list) == 0 || !strings.HasPrefix(list[0].ID, id) {
		return fmt.Errorf("list by prefix: %d jobs, %w", len(list), err)
	}
	if found, _, err := a.Nomad.Search().PrefixSearch(id, "jobs", nil); err != nil || len(found.Matches["jobs"]) == 0 {
		return fmt.Errorf("search: %+v, %w", found, err)
	}
	if _, _, err := jobs.ForceEvaluate(id, nil); err != nil {
		return fmt.Errorf("evaluate: %w", err)
	}
	return jobIDRaw(a, id)
}

// jobIDRaw reads a job by its path, every byte of which is escaped.
func jobIDRaw(a *harness.Agent, id string) error {
	var escaped strings.Builder
	for i := range len(id) {
		fmt.Fprintf(&escaped, "%%%02X", id[i])
	}
	for _, path := range []string{url.PathEscape(id), escaped.String()} {
		if path == "." || path == ".." { // the escaped ones reach the agent
			continue
		}
		answer, err := http.Get(a.HTTP + "/v1/job/" + path + "/summary") // the agent ends with the test
		if err != nil {
			return err
		}
		_ = answer.Body.Close() // nothing of it is read
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("GET /v1/job/%s/summary: %s", path, answer.Status)
		}
	}
	return nil
}
