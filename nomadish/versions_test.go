package nomadish

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// TestEntriesOfMixedVersions: no entry is written that a server would stop at, whichever server is asked; it is once those
// that do not know it are upgraded, and who does not say what it knows is taken for one of them.
func TestEntriesOfMixedVersions(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, func(i int, c *Config) {
		c.Version = "1.0"
		if i > 0 {
			c.Membership.Entries, c.Version = structs.LogTypeFirst, fmt.Sprintf("0.%d", 7+i)
		}
	})
	stable := func(s *Server, version uint64) error {
		args := &structs.JobStabilityRequest{JobID: "job", JobVersion: version, Stable: true}
		return s.Call(t.Context(), wire.MethodJobStability, args, &structs.JobStabilityReply{})
	}
	refused := func(words ...string) {
		t.Helper()
		for _, s := range f.up() {
			within(t, time.Minute, strings.Join(words, " and "), func(context.Context) error {
				err := stable(s, 0)
				if structs.CodeOf(err) != structs.CodeUnsupported {
					return fmt.Errorf("answered %w", err)
				}
				for _, word := range words {
					if !strings.Contains(err.Error(), word) {
						return fmt.Errorf("it says %w", err)
					}
				}
				return nil
			})
		}
		for _, s := range f.up() {
			if job := s.store.Snapshot().Job(nil, structs.DefaultNamespace, "job"); job != nil && job.Stable {
				t.Errorf("%s has it nevertheless", s.cfg.Name)
			}
		}
	}
	requeued := func(seed string) int {
		t.Helper()
		place := &structs.PlacementBatch{
			Namespace: structs.DefaultNamespace, JobID: "other", Group: "g", Seed: seed, EvalID: seed,
			Nodes: []structs.PlacedNode{{ID: "n", Name: "n"}}, Instances: []structs.Instance{{Requeues: 2}},
		}
		leader := f.all[f.leader()]
		entry := &structs.PlanCommit{Plans: []*structs.JudgedPlan{{EvalID: seed, Time: time.Now().UnixNano(), Place: []*structs.PlacementBatch{place}}}}
		if _, err := leader.raft.Apply(t.Context(), structs.LogPlanApply, entry); err != nil {
			t.Fatal(err)
		}
		return leader.store.Snapshot().Alloc(nil, structs.DeriveID(seed, 0)).Requeues
	}
	upgrade := func(i int) {
		f.crash(i)
		f.cfgs[i].Membership.Entries, f.cfgs[i].Version = 0, "1.0"
		f.run(i)
		f.formed(3)
	}
	if _, err := register(t.Context(), f.all[0], batchJob("job", 1)); err != nil {
		t.Fatal(err)
	}
	refused("log entry of type 19", "upgrade s1 (version 0.8), s2 (version 0.9)")
	if n := requeued("mixed"); n != 0 {
		t.Errorf("an instance was requeued %d times, which not all servers know", n)
	}
	upgrade(1)
	refused("upgrade s2 (version 0.9)")
	upgrade(2)
	for _, s := range f.all {
		within(t, time.Minute, "all know it", func(context.Context) error { return stable(s, 0) })
	}
	if n := requeued("equal"); n != 2 {
		t.Errorf("an instance was requeued %d times", n)
	}
	within(t, time.Minute, "known by all", func(context.Context) error {
		for _, s := range f.all {
			if job := s.store.Snapshot().Job(nil, structs.DefaultNamespace, "job"); job == nil || !job.Stable {
				return fmt.Errorf("%s: %+v", s.cfg.Name, job)
			}
		}
		return nil
	})
	if err := stable(f.all[0], 7); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("a version that is not there: %v", err)
	}
}

// TestHaltedAgain: a state that was restored may be followed by another entry that is not known.
func TestHaltedAgain(t *testing.T) {
	s := &Server{halt: make(chan struct{})}
	s.halted(nil)
	s.halted(nil)
	<-s.halt
}
