package queue

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

const (
	weekProjects = 200
	weekJobs     = 10_000
	weekLength   = int64(time.Hour)
)

// BenchmarkWeekBegins has a week begin in which all of 200 projects have other slots than in the one before, with 10,000 waiting jobs of theirs: from when the
// entry is applied until the last of them has its new rank. It reports the slowest begin as ns/slowest.
func BenchmarkWeekBegins(b *testing.B) {
	l := newLog(state.Options{})
	weekWorld(b, l, int64(b.N)+1)
	broker := New(Options{NewID: testcluster.IDs("id-%d")}, l, l.store.LatestIndex)
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	wg.Go(func() { broker.Run(ctx, l.store) })
	defer wg.Wait()
	defer cancel()
	seen := func(index uint64) bool {
		broker.mu.Lock()
		defer broker.mu.Unlock()
		return broker.seen >= index
	}
	for !seen(l.Index()) {
		time.Sleep(time.Millisecond)
	}
	begin := func(week int64) time.Duration {
		since := time.Now()
		index := l.Put(b, &structs.ClaimsTimeEntry{Now: week * weekLength, EvalSeed: fmt.Sprint(week)})
		for !seen(index) {
			time.Sleep(10 * time.Microsecond)
		}
		return time.Since(since)
	}
	begin(1)
	begin(2)
	var took []time.Duration
	b.ResetTimer()
	for i := range b.N {
		took = append(took, begin(int64(i)+3))
	}
	b.ReportMetric(float64(slices.Max(took).Nanoseconds()), "ns/slowest")
	b.StopTimer()
}

// weekWorld fills a log with projects, whose slots of so many weeks go from step to step, and with blocked jobs of theirs.
func weekWorld(b *testing.B, l *log, weeks int64) {
	n := node("n", "small")
	n.NodeResources.Slots = map[string]int{structs.SlotBatch: 4 * weekProjects}
	n.NodeResources.Cpu.TotalCpuCores, n.NodeResources.Memory.MemoryMB = 4*weekProjects, 4*weekProjects*1024
	l.Put(b, &structs.NodeRegisterEntry{Node: n, Time: 1, EvalSeed: "n"})
	for i := range weekProjects {
		name := fmt.Sprintf("p%03d", i)
		l.Put(b, &structs.ProjectUpsertEntry{Project: &structs.Project{Name: name, Users: []string{"ada"}, Steps: []string{"a", "b"}}, Time: 1})
		for week := range min(weeks+2, 1000) {
			id := fmt.Sprintf("%04d-W%02d", 2026+week/52, 1+week%52)
			l.Put(b, &structs.ProjectCalendarEntry{Time: 1, Week: &structs.ProjectWeek{
				Project: name, Week: id, Rows: []structs.CalendarRow{{Type: structs.SlotBatch, Step: []string{"a", "b"}[week%2], Count: 2}},
				From: (week + 1) * weekLength, To: (week + 2) * weekLength,
			}})
		}
	}
	var evals []*structs.Evaluation
	for i := range weekJobs {
		id := fmt.Sprintf("job-%05d", i)
		l.Put(b, &structs.JobRegisterEntry{Time: 1, Job: &structs.Job{
			ID: id, Namespace: structs.DefaultNamespace, Type: structs.JobTypeService, Priority: 50, NodePool: structs.NodePoolDefault,
			Project: fmt.Sprintf("p%03d", i%weekProjects), Step: []string{"a", "b"}[i/weekProjects%2], Submitter: &structs.Submitter{User: "ada"},
			TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 1}},
		}})
		evals = append(evals, blockedEval(testcluster.AllocID("eval", i), id, 1))
	}
	for list := range slices.Chunk(evals, 1000) {
		l.evals(b, list...)
	}
}
