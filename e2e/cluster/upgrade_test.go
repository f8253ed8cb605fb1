//go:build !race

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// trailing is how many log entries a server of the test keeps beside its last snapshot.
const trailing = 8

// upgrade is a cluster of three servers and a client on its way from the earlier version to this one.
type upgrade struct {
	t       *testing.T
	earlier string // the binary
	all     harness.Servers
	client  *harness.Agent
	jobs    int
	written int // jobs of no instance
}

// TestRollingUpgrade: a cluster of an earlier version, which knows a type of log entries less, is upgraded one server at a time,
// each with its data_dir, while jobs are registered through servers of both versions and each version leads. What takes the newer
// type is refused until the last server knows it. At each step all servers have the same state; one that lags behind, too,
// by the log and by a snapshot of the newer version. The work of before runs on, and what the earlier version saved is restored.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	u := &upgrade{t: t, earlier: buildEarlier(t)}
	u.all = harness.NewServers(t, 3, fmt.Sprintf("server {\n  raft_snapshot_threshold = 8\n  raft_snapshot_interval = \"200ms\"\n  raft_trailing_logs = %d\n}\n", trailing))
	for _, a := range u.all {
		a.Bin = u.earlier
		a.Start()
	}
	u.all.WaitFormed(t, 3)
	u.client = harness.NewAgent(t, false, fmt.Sprintf("name = \"client\"\nclient {\n  enabled = true\n  servers = [%q]\n}\n", u.all[0].RPC))
	u.client.Bin = u.earlier
	u.client.Start()
	u.all[0].WaitReady(1)
	u.register(u.all[0], harness.OfficialJob("first", "exec sleep 100000"))
	first := u.all[0].WaitRunning("first", 1, 30*time.Second)[0]
	waits := harness.OfficialJob("waits", "exit 0")
	waits.NodePool = harness.Ptr("spare") // which the earlier version does not keep
	u.register(u.all[0], waits)
	file, saved := u.save()
	u.refused()

	for n := range u.all {
		old := u.older()
		next := old[0]
		if len(old) > 1 {
			next = older(u.all.Except(u.all.Leader(t)))[0] // the leader goes last
		}
		u.upgrade(next)
		if n == 1 {
			u.lags(u.older()[0])
		}
		u.mixed()
	}
	u.accepted()
	u.end(u.client)
	u.client.Bin = ""
	u.client.Start()
	u.all[0].WaitReady(1)
	u.work(u.all[0])
	for _, a := range u.all {
		if now := a.WaitRunning("first", 1, 30*time.Second)[0]; now.ID != first.ID || now.TaskStates["t"].Restarts != 0 {
			t.Errorf("the work of before is allocation %s, not %s, and was restarted %d times", now.ID, first.ID, now.TaskStates["t"].Restarts)
		}
	}
	u.equal()
	u.restored(file, saved)
	harness.Within(t, 90*time.Second, "the node pool of before", func(context.Context) error {
		_, _, err := u.all[0].Nomad.NodePools().Info("spare", nil)
		return err
	})
	u.equal()
}

// older are those of the earlier version.
func older(all harness.Servers) harness.Servers {
	return slices.DeleteFunc(slices.Clone(all), func(a *harness.Agent) bool { return a.Bin == "" })
}

func (u *upgrade) older() harness.Servers { return older(u.all) }

// newer are those of this version.
func (u *upgrade) newer() harness.Servers {
	return slices.DeleteFunc(slices.Clone(u.all), func(a *harness.Agent) bool { return a.Bin != "" })
}

// end ends an agent, in good order unless it takes too long: what is wrong with the earlier version cannot be mended here.
func (u *upgrade) end(a *harness.Agent) {
	u.t.Helper()
	if err := a.Cmd.Process.Signal(os.Interrupt); err != nil {
		u.t.Fatal(err)
	}
	select {
	case err := <-a.Exited:
		a.Exited <- err // for cleanup
		if err != nil {
			u.t.Fatalf("an agent ended with %v\n%s", err, a.Log.Tail(30))
		}
	case <-time.After(harness.Scaled(30 * time.Second)):
		u.t.Logf("an agent does not end, and is killed\n%s", a.Log.Tail(30))
		a.Kill()
	}
}

// upgrade replaces a server, which has a snapshot of the earlier version by then.
func (u *upgrade) upgrade(a *harness.Agent) {
	u.t.Helper()
	harness.Within(u.t, 30*time.Second, "a snapshot of Raft", func(context.Context) error {
		if len(u.snapshots(a)) == 0 {
			u.write(a)
			return errors.New("none")
		}
		return nil
	})
	u.end(a)
	a.Bin = ""
	a.Start()
	u.all.WaitFormed(u.t, 3)
}

// mixed sees that the cluster works whichever version leads, and that nothing newer comes into the log too early.
func (u *upgrade) mixed() {
	u.t.Helper()
	for _, a := range u.all {
		harness.Within(u.t, 20*time.Second, "the members' versions", func(context.Context) error {
			out, code := a.CLI("server", "members")
			if have, want := strings.Count(out, "  "+earlierVersion+"  "), len(u.older()); code != 0 || have != want || strings.Count(out, "  alive  ") != 3 {
				return fmt.Errorf("exit %d, %d of version %s, not %d:\n%s", code, have, earlierVersion, want, out)
			}
			return nil
		})
	}
	older, newer := u.older(), u.newer()
	u.leads(newer[0])
	u.work(u.all.Except(newer[0])[0]) // through a follower, of the earlier version if there is one
	if len(older) > 0 {
		u.work(older[0])
		u.refused()
		u.leads(older[0])
		u.work(newer[0])
		u.refused()
	}
	u.equal()
}

// leads has a server lead.
func (u *upgrade) leads(a *harness.Agent) {
	u.t.Helper()
	harness.Within(u.t, 30*time.Second, "leadership handed over", func(ctx context.Context) error {
		now := u.all.Leader(u.t)
		if now == a {
			return nil
		}
		err := now.API.Operator().RaftTransfer(ctx, "", a.RPC)
		return errors.Join(fmt.Errorf("%s leads", now.RPC), err)
	})
}

func (u *upgrade) register(a *harness.Agent, job *nomad.Job) {
	u.t.Helper()
	harness.Within(u.t, 30*time.Second, "job "+*job.ID, func(context.Context) error {
		_, _, err := a.Nomad.Jobs().Register(job, nil)
		return err
	})
}

// work has a job registered through a server, placed and run to its end.
func (u *upgrade) work(a *harness.Agent) {
	u.t.Helper()
	u.jobs++
	job := harness.OfficialJob(fmt.Sprintf("work-%d", u.jobs), "exit 0")
	job.Type = harness.Ptr(structs.JobTypeBatch)
	u.register(a, job)
	a.WaitInStatus(*job.ID, structs.AllocClientComplete, 1, 30*time.Second)
}

// write has a job of no instance registered, for the entries in the log.
func (u *upgrade) write(a *harness.Agent) {
	u.t.Helper()
	u.written++
	job := harness.OfficialJob(fmt.Sprintf("written-%d", u.written), "exit 0")
	job.Type, job.TaskGroups[0].Count = harness.Ptr(structs.JobTypeBatch), harness.Ptr(0)
	u.register(a, job)
}

// refused: what takes an entry of the newer type is refused by all; those that know it name the servers that do not.
func (u *upgrade) refused() {
	u.t.Helper()
	for _, a := range u.all {
		harness.Within(u.t, 20*time.Second, "refusing", func(ctx context.Context) error {
			_, _, err := a.Nomad.Jobs().Stable("first", 0, true, nil)
			if err == nil {
				u.t.Fatalf("it is done, though %d servers do not know it", len(u.older()))
			}
			for i, other := range u.all {
				if named := fmt.Sprintf("server-%d (version %s)", i, earlierVersion); a.Bin == "" && strings.Contains(err.Error(), named) != (other.Bin != "") {
					return fmt.Errorf("it says %w", err)
				}
			}
			if a.Bin == "" && !strings.Contains(err.Error(), "upgrade server-") {
				return fmt.Errorf("it says %w", err)
			}
			job, _, err := a.API.Jobs().Info(ctx, "first", nil)
			if err == nil && job.Stable {
				u.t.Fatal("it was done nevertheless")
			}
			if err != nil {
				return err
			}
			if _, err := a.Nomad.NodePools().Register(&nomad.NodePool{Name: "gpu"}, nil); err == nil {
				u.t.Fatal("a node pool is made that not all servers know")
			}
			pools, _, err := a.Nomad.NodePools().List(nil)
			if err == nil && len(pools) != 2 {
				err = fmt.Errorf("%d node pools", len(pools))
			}
			return err
		})
	}
}

// accepted: all know the newer type now.
func (u *upgrade) accepted() {
	u.t.Helper()
	for _, a := range u.all {
		harness.Within(u.t, 20*time.Second, "a version said to be stable", func(context.Context) error {
			_, _, err := a.Nomad.Jobs().Stable("first", 0, true, nil)
			if err == nil {
				_, err = a.Nomad.NodePools().Register(&nomad.NodePool{Name: "dev"}, nil)
			}
			return err
		})
	}
	for _, a := range u.all {
		harness.Within(u.t, 20*time.Second, "known by all", func(ctx context.Context) error {
			job, _, err := a.API.Jobs().Info(ctx, "first", &api.Query{Stale: true})
			if err == nil && !job.Stable {
				err = errors.New("it is not stable")
			}
			return err
		})
	}
}

// equal waits until all servers have applied the same entries: their states are the same then.
func (u *upgrade) equal() *structs.CheckReport {
	u.t.Helper()
	var last *structs.CheckReport
	harness.Within(u.t, 30*time.Second, "all servers at one index", func(ctx context.Context) error {
		last = nil
		for _, a := range u.all {
			r, err := a.API.Operator().Check(ctx, &api.Query{Stale: true})
			switch {
			case err != nil:
				return err
			case last == nil:
				last = r
			case r.StateIndex != last.StateIndex:
				return fmt.Errorf("%s is at %d, %s at %d", last.Server, last.StateIndex, r.Server, r.StateIndex)
			case r.Hash != last.Hash:
				u.t.Fatalf("at index %d the state of %s is %s, that of %s %s", r.StateIndex, last.Server, last.Hash, r.Server, r.Hash)
			}
		}
		return nil
	})
	return last
}

// snapshots are the indexes of those that a server's Raft has on disk, in order.
func (u *upgrade) snapshots(a *harness.Agent) (at []uint64) {
	u.t.Helper()
	files, err := filepath.Glob(filepath.Join(a.Dir, "data", "server", "raft", "snapshots", "*[0-9]", "meta.json"))
	if err != nil {
		u.t.Fatal(err)
	}
	for _, file := range files {
		var meta struct{ Index uint64 }
		if text, err := os.ReadFile(file); err == nil && json.Unmarshal(text, &meta) == nil { // it may have been replaced meanwhile
			at = append(at, meta.Index)
		}
	}
	slices.Sort(at)
	return at
}

// lags kills a server of the earlier version twice. What was written meanwhile it gets from the newer ones: the first time from
// the log, the second as a snapshot.
func (u *upgrade) lags(late *harness.Agent) {
	u.t.Helper()
	u.leads(u.newer()[0])
	at := u.equal().StateIndex
	late.Kill()
	u.write(u.newer()[0])
	late.Start()
	u.all.WaitFormed(u.t, 3)
	if now := u.equal().StateIndex; now <= at {
		u.t.Errorf("index %d after %d", now, at)
	}
	late.Kill()
	at = state(u.newer()[0]).StateIndex + 3*trailing // and some, if more was under way
	for _, a := range u.newer() {
		harness.Within(u.t, 60*time.Second, "the entries that it lacks dropped", func(context.Context) error {
			// That is done after a snapshot, and before the next.
			if now := u.snapshots(a); len(now) < 2 || now[0] <= at {
				u.write(a)
				return fmt.Errorf("the snapshots are at %d, that of the late one was before %d", now, at)
			}
			return nil
		})
	}
	late.Start()
	u.all.WaitFormed(u.t, 3)
	u.equal()
	harness.Within(u.t, 20*time.Second, "a snapshot in its log", func(context.Context) error { // which is written after the state has moved
		if !strings.Contains(late.Log.Tail(1<<20), "Installed remote snapshot") {
			return errors.New("it has caught up otherwise")
		}
		return nil
	})
}

// save saves the state by the earlier version, while nothing moves.
func (u *upgrade) save() (file string, saved *structs.CheckReport) {
	u.t.Helper()
	file = filepath.Join(u.t.TempDir(), "earlier.snap")
	harness.Within(u.t, 60*time.Second, "a moment of rest in which the state is saved", func(context.Context) error {
		_ = os.Remove(file) // of the last try
		saved = state(u.all[0])
		if out, code := u.all[0].CLI("operator", "snapshot", "save", file); code != 0 {
			u.t.Fatalf("save: %s", out)
		}
		if now := state(u.all[0]); now.Hash != saved.Hash {
			return fmt.Errorf("it went from index %d to %d", saved.StateIndex, now.StateIndex)
		}
		return nil
	})
	return file, saved
}

// restored: this version restores what the earlier one saved.
func (u *upgrade) restored(file string, saved *structs.CheckReport) {
	u.t.Helper()
	fresh := harness.NewAgent(u.t, false, "name = \"fresh\"\n"+serverOnly)
	fresh.Start()
	fresh.WaitReady(0)
	if out, code := fresh.CLI("operator", "snapshot", "restore", file); code != 0 {
		u.t.Fatalf("restore: %s", out)
	}
	if now := state(fresh); now.Hash != saved.Hash {
		u.t.Errorf("the state restored is %s, the one saved was %s", now.Hash, saved.Hash)
	}
}
