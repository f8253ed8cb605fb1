package forecast

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// TestStarts: three jobs of one node start one after the other, and each waits for the one before.
func TestStarts(t *testing.T) {
	r := newReality(t)
	r.nodes(1)
	for i := range 3 {
		r.submit(gpuJob(fmt.Sprint("j", i), 50, 1, 8, time.Duration(i+1)*time.Hour))
		r.until(r.now.Add(time.Minute))
	}
	f := r.forecast(Options{})
	if len(f.Requests) != 2 {
		t.Fatalf("%d requests wait, not 2", len(f.Requests))
	}
	for i, want := range []time.Time{epoch.Add(time.Hour), epoch.Add(3 * time.Hour)} {
		got := f.Requests[i]
		if at := time.Unix(0, got.Latest.All); !at.Equal(want) || got.Latest.First != got.Latest.All || got.Latest.Unknown != "" {
			t.Errorf("%s starts %s (%s), not %s", got.JobID, at.UTC(), got.Latest.Unknown, want)
		}
		if ends := got.Latest.WaitsFor; len(ends) != 1 || ends[0].Name != fmt.Sprintf("j%d.g[0]", i) || ends[0].Time != want.UnixNano() {
			t.Errorf("%s waits for %+v", got.JobID, ends)
		}
	}
}

// TestStartsOfTheRest: what is placed and does not run yet is no part of what waits: its start is not that of the first of the rest, nor in its place.
func TestStartsOfTheRest(t *testing.T) {
	r := newReality(t)
	r.nodes(1)
	r.submit(gpuJob("part", 50, 6, 4, time.Hour))
	if err := r.settle(t.Context(), func(context.Context) error { return nil }); err != nil { // no client has reported
		t.Fatal(err)
	}
	f := r.forecast(Options{}).Requests[0]
	first, all := time.Unix(0, f.Latest.First), time.Unix(0, f.Latest.All)
	if f.Missing != 4 || !first.Equal(epoch.Add(time.Hour)) || !all.Equal(epoch.Add(2*time.Hour)) {
		t.Errorf("%d wait, the first until %s, all until %s", f.Missing, first.UTC(), all.UTC())
	}
}

// TestChangedJob: the forecast of a job that was registered anew is of all instances that it then waits for, though nobody has decided on it: of more
// instances, and of one that is replaced.
func TestChangedJob(t *testing.T) {
	begin := func() *reality {
		r := newReality(t)
		r.nodes(1)
		r.submit(gpuJob("runs", 50, 1, 4, time.Hour))
		r.submit(gpuJob("beside", 50, 1, 2, 2*time.Hour))
		r.submit(gpuJob("longer", 50, 1, 2, 5*time.Hour/2))
		r.submit(gpuJob("waits", 50, 1, 8, time.Hour))
		r.until(r.now.Add(time.Minute))
		return r
	}
	f := func(j *structs.Job, missing int, first, all time.Duration) {
		t.Helper()
		r := begin()
		r.submit(j)
		id := j.NamespacedID()
		got := r.forecast(Options{Only: &id}).Requests
		if len(got) != 1 {
			t.Errorf("%s: %d groups", j.ID, len(got))
			return
		}
		x := got[0].Latest
		if a, b := time.Unix(0, x.First).Sub(epoch), time.Unix(0, x.All).Sub(epoch); got[0].Missing != missing || (a-first).Abs() > 10*time.Second || (b-all).Abs() > 10*time.Second {
			t.Errorf("%s: %d wait, the first starts after %s, all after %s: %s", j.ID, got[0].Missing, a, b, x.Unknown)
		}
		from := r.now
		r.until(from.Add(4 * time.Hour))
		if starts := r.started(got[0], from); len(starts) != missing || starts[0].Sub(time.Unix(0, x.First)).Abs() > time.Second || starts[missing-1].Sub(time.Unix(0, x.All)).Abs() > time.Second {
			t.Errorf("%s: in earnest they start at %v", j.ID, starts)
		}
	}
	f(gpuJob("waits", 50, 2, 8, time.Hour), 2, 5*time.Hour/2, 7*time.Hour/2)
	f(gpuJob("runs", 90, 1, 8, time.Hour), 1, 7*time.Hour/2, 7*time.Hour/2) // the other has reserved its room
	f(gpuJob("longer", 90, 1, 4, time.Hour), 1, time.Hour, time.Hour)       // which runs on until then
}

// TestHolds: what has no limit and no history holds its room.
func TestHolds(t *testing.T) {
	r := newReality(t)
	r.nodes(1)
	r.submit(gpuJob("endless", 50, 5, 1, 0))
	r.until(r.now.Add(time.Minute))
	r.submit(gpuJob("waits", 50, 1, 8, time.Hour))
	r.until(r.now.Add(time.Minute))
	f := r.forecast(Options{})
	want := "not within 168h0m0s; endless.g[0], endless.g[1], endless.g[2] and 2 more may hold their room: no max_run_duration and no finished run of their job or user"
	if len(f.Requests) != 1 || f.Requests[0].Latest.All != 0 || f.Requests[0].Latest.Unknown != want {
		t.Fatalf("%+v", f.Requests[0])
	}
}

// TestTooLarge: what cannot start on the nodes that there are is stated to be so, and nobody is stated to hold its room: where an instance is larger than any
// node, where a gang is larger than all of them, and where no node may run it. Half a GPU for each of more tasks than GPUs is not.
func TestTooLarge(t *testing.T) {
	r := newReality(t)
	r.nodes(2)
	r.put(&structs.NodeStatusEntry{NodeIDs: []string{"node-0001"}, Status: structs.NodeStatusDown, Time: r.now.UnixNano(), EvalSeed: r.newID()})
	r.comes(gpuJob("endless", 50, 1, 8, 0))
	r.comes(gpuJob("a-large", 50, 1, 9, time.Hour))
	gang := gpuJob("b-gang", 50, 2, 8, time.Hour)
	gang.TaskGroups[0].Gang = &structs.Gang{}
	r.comes(gang)
	nowhere := gpuJob("c-nowhere", 50, 1, 1, time.Hour)
	nowhere.Constraints = []*structs.Constraint{{LTarget: "${node.class}", RTarget: "other", Operand: "="}}
	r.comes(nowhere)
	parts := gpuJob("d-parts", 50, 1, 1, time.Hour)
	task := parts.TaskGroups[0].Tasks[0]
	task.Resources.Devices[0].Share = 500
	for i := range 8 {
		other := *task
		other.Name = fmt.Sprint("t", i)
		parts.TaskGroups[0].Tasks = append(parts.TaskGroups[0].Tasks, &other)
	}
	r.comes(parts)
	f := r.forecast(Options{})
	for i, want := range []string{
		"larger than any node: an instance needs 9 devices, and no node that is ready and may run it has more than 8",
		"larger than the cluster: 2 instances start together, and all nodes that are ready and may run them have room for 1, when they are empty",
		"no node that is ready may run it",
		"not within 168h0m0s; endless.g[0] may hold their room: no max_run_duration and no finished run of their job or user",
	} {
		if q := f.Requests[i]; q.Latest.Unknown != want || q.Expected.Unknown != want {
			t.Errorf("%s: %s", q.JobID, q.Latest.Unknown)
		}
	}
}

// plant submits jobs of several sizes, limits, bands, gangs and tenants.
func plant(r *reality, rng *rand.Rand, n int) {
	for _, name := range []string{"blue", "red"} {
		r.put(&structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: name}})
	}
	r.put(&structs.VirtualClusterUpsertEntry{
		VirtualCluster: &structs.VirtualCluster{Name: "red", Cells: []*structs.CellQuota{{Level: structs.LevelNode, Count: 2}}}, EvalSeed: r.newID(), Time: r.now.UnixNano(),
	})
	for i := range n {
		count, gpus := 1+rng.IntN(3), []int{1, 1, 2, 4, 8}[rng.IntN(5)]
		j := gpuJob(fmt.Sprintf("job-%03d", i), []int{20, 50, 50, 80}[rng.IntN(4)], count, gpus, time.Duration(60+rng.IntN(2400))*time.Second)
		j.Namespace = []string{structs.DefaultNamespace, "blue", "red"}[rng.IntN(3)]
		if rng.IntN(4) == 0 {
			j.TaskGroups[0].Gang = &structs.Gang{}
		}
		r.submit(j)
		if rng.IntN(3) == 0 {
			r.until(r.now.Add(time.Duration(rng.IntN(10_000)) * time.Millisecond))
		}
	}
	r.until(r.now.Add(time.Second))
}

// last is when the last instance of a forecast starts.
func last(f *structs.Forecast) time.Time {
	end := f.Time
	for _, q := range f.Requests {
		end = max(end, q.Latest.All)
	}
	return time.Unix(0, end)
}

// Seeds of planted queues that CI runs.
var latestSeeds, earlySeeds = []uint64{13}, []uint64{3}

// TestLatestIsWhatHappens: if all that runs takes all the time that it may, what waits in a queue of 200 jobs starts when the forecast states, to the second.
// The leader counts now and then why it waits, as it does in earnest: the forecast does not, and that must make no difference.
func TestLatestIsWhatHappens(t *testing.T) {
	for _, seed := range seedsOr(latestSeeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := newReality(t)
			r.nodes(16)
			plant(r, rand.New(rand.NewPCG(seed, 1)), 200)
			r.holds(100)
		})
	}
}

// TestLatestOfManyKinds: where each job has a time limit of its own, and all nodes are reserved, the forecast tries few of them, and is right.
func TestLatestOfManyKinds(t *testing.T) {
	for _, seed := range seedsOr([]uint64{1, 2, 3}) {
		r := newReality(t)
		r.nodes(3)
		rng := rand.New(rand.NewPCG(seed, 1))
		for i := range 60 {
			r.submit(gpuJob(fmt.Sprint("j", i), []int{20, 50}[rng.IntN(2)], 1+rng.IntN(2), []int{1, 2, 4, 8}[rng.IntN(4)], time.Duration(600+rng.IntN(7200))*time.Second))
			r.until(r.now.Add(time.Duration(rng.IntN(60)) * time.Second))
		}
		r.holds(30)
	}
}

// TestEarlyEnds: where jobs end before their time limits, none starts later than the forecast states at the latest, but whose room somebody has that was
// to start after it, or for whom it is reserved: each is named. Nobody came in these queues. That is one that ranks lower and passed it in backfill, or one that
// ranks higher and that it was to pass in backfill, the same seen from the other side: others ended so early that this one started first, where it
// was to start later or elsewhere. No pass can keep a start of the one without taking from the other what its rank gives it.
func TestEarlyEnds(t *testing.T) {
	for _, seed := range seedsOr(earlySeeds) {
		r := newReality(t)
		r.nodes(16)
		rng := rand.New(rand.NewPCG(seed, 1))
		plant(r, rng, 120)
		r.takes = func(a *structs.Allocation) time.Duration { return limitOf(a) * time.Duration(20+rng.IntN(80)) / 100 }
		told, places := present(r.stays), r.places()
		f, from := r.forecast(Options{Stays: told}), r.now
		r.lookAt(f)
		r.until(last(f).Add(time.Hour))
		late, count := 0, map[string]int{}
		for _, q := range f.Requests {
			_, by, waits := r.differs(q, goBefore(f, q), from)
			if waits > 0 {
				t.Errorf("%s/%s: %d of %d have not started", q.Namespace, q.JobID, waits, q.Missing)
				continue
			}
			if by < time.Second {
				continue
			}
			late++
			why := r.judge(q, told, from, places)
			t.Logf("%s/%s: the last of %d started %s later than was stated: %s", q.Namespace, q.JobID, q.Missing, by, why)
			if first := why.first(); first == "" || first == delayed || first == elsewhere { // these follow from others
				t.Errorf("%s/%s started %s later than was stated, and nobody is newly before it: %s", q.Namespace, q.JobID, by, why)
			}
			count[why.first()]++
		}
		t.Logf("seed %d: %d of %d started later: %v", seed, late, len(f.Requests), count)
	}
}

// TestSameBytes: the same state gives the same forecast, also where it was restored from a snapshot, and where its work is paced.
func TestSameBytes(t *testing.T) {
	r := newReality(t)
	r.nodes(16)
	plant(r, rand.New(rand.NewPCG(5, 1)), 60)
	want, err := json.Marshal(r.forecast(Options{}))
	if err != nil {
		t.Fatal(err)
	}
	restored := testcluster.New(1, state.Options{})
	restored.Restore(t, bytes.NewReader(r.log.Snapshot(t)))
	for _, store := range []*state.Store{r.log.Store, restored.Store} {
		paced := 0
		f, err := Run(t.Context(), store, Options{Now: r.now, Pace: func(context.Context) { paced++ }})
		if err != nil || paced < 100 {
			t.Fatalf("paced %d times: %v", paced, err)
		}
		if got, err := json.Marshal(f); err != nil || !bytes.Equal(got, want) {
			t.Errorf("another forecast (%v):\n%.2000s\nnot\n%.2000s", err, got, want)
		}
	}
}

// TestStateIsAsItWas: a forecast changes nothing of the state that it is made of.
func TestStateIsAsItWas(t *testing.T) {
	r := newReality(t)
	r.nodes(4)
	plant(r, rand.New(rand.NewPCG(6, 1)), 20)
	index, hash := r.log.Store.LatestIndex(), r.log.Store.Snapshot().Hash()
	r.forecast(Options{})
	if snap := r.log.Store.Snapshot(); snap.Index() != index || snap.Hash() != hash {
		t.Error("the state has changed")
	}
}

// TestExpected: who waits for a job that has run before is expected to start when that ends by the mean of its runs, and at the latest when its limit is over.
func TestExpected(t *testing.T) {
	r := newReality(t)
	r.nodes(1)
	by := &structs.Submitter{User: "ada"}
	job := func(id string, limit time.Duration) *structs.Job {
		j := gpuJob(id, 50, 1, 8, limit)
		j.Submitter = by
		return j
	}
	r.takes = func(*structs.Allocation) time.Duration { return 10 * time.Minute }
	r.submit(job("done", time.Hour))
	r.until(epoch.Add(20 * time.Minute))
	r.submit(job("runs", time.Hour))
	r.until(r.now.Add(time.Minute))
	r.submit(job("waits", time.Hour))
	r.until(r.now.Add(time.Minute))
	f := r.forecast(Options{})
	q := f.Of(structs.DefaultNamespace, "waits", "g")
	if q == nil || q.Expected.All != epoch.Add(30*time.Minute).UnixNano() || q.Latest.All != epoch.Add(80*time.Minute).UnixNano() {
		t.Fatalf("%+v", q)
	}
}

// TestManyAtOnce: a forecast is made, whatever happens at one time: of a job of more instances than a state keeps changes for those who follow it, which are
// placed together and end together, and of more jobs on which nobody has decided.
func TestManyAtOnce(t *testing.T) {
	const many = 5000
	r := newReality(t)
	for i := range 10 {
		r.put(&structs.NodeRegisterEntry{Node: testcluster.Node(fmt.Sprint("node-", i), 1_000_000), Time: r.now.UnixNano()})
	}
	job := func(id string, count, mhz int) *structs.Job {
		j := testcluster.Job(id, structs.JobTypeBatch, count)
		j.TaskGroups[0].MaxRunDuration, j.TaskGroups[0].Tasks[0].Resources = time.Hour, &structs.Resources{CPU: mhz, MemoryMB: 1}
		return j
	}
	r.submit(job("many", many, 2000))
	for i := range many {
		r.submit(job(fmt.Sprintf("job-%04d", i), 1, 2000))
	}
	for _, q := range r.forecast(Options{}).Requests {
		want := epoch
		if q.JobID != "many" {
			want = epoch.Add(time.Hour)
		}
		if q.Latest.All != want.UnixNano() {
			t.Fatalf("%s starts %s: %s", q.JobID, time.Unix(0, q.Latest.All).UTC(), q.Latest.Unknown)
		}
	}
}

// TestPacedWhileDeciding: a forecast rests, and ends when its time is spent, while it decides on many jobs that came together, too.
func TestPacedWhileDeciding(t *testing.T) {
	const many, steps = 200, 10
	r := newReality(t)
	r.nodes(1)
	for i := range many {
		r.submit(gpuJob(fmt.Sprint("j", i), 50, 1, 8, time.Hour))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	paced := 0
	f, err := Run(ctx, r.log.Store, Options{Now: r.now, Entries: many / 2, Pace: func(context.Context) {
		if paced++; paced == steps {
			cancel()
		}
	}})
	if err != nil || paced != steps {
		t.Fatalf("its time was spent after %d steps, and it ended after %d: %v", steps, paced, err)
	}
	if why := f.Requests[many-1].Latest.Unknown; !strings.HasPrefix(why, RanOutOfTime) {
		t.Errorf("it went on with what came together: %s", why)
	}
}

// TestBounds: a horizon beyond the limit is refused, and a forecast ends when its budget or its time is spent.
func TestBounds(t *testing.T) {
	r := newReality(t)
	r.nodes(1)
	for i := range 4 {
		r.submit(gpuJob(fmt.Sprint("j", i), 50, 1, 8, time.Hour))
	}
	r.until(r.now.Add(time.Minute))
	for _, horizon := range []time.Duration{-time.Second, structs.MaxForecastHorizon + 1} {
		if _, err := Run(t.Context(), r.log.Store, Options{Now: r.now, Horizon: horizon}); structs.CodeOf(err) != structs.CodeBadRequest {
			t.Errorf("horizon %s: %v", horizon, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for what, f := range map[string]func() (*structs.Forecast, error){
		"not within 1h30m0s": func() (*structs.Forecast, error) {
			return Run(t.Context(), r.log.Store, Options{Now: r.now, Horizon: 90 * time.Minute})
		},
		"the forecast ends after 4 log entries": func() (*structs.Forecast, error) {
			return Run(t.Context(), r.log.Store, Options{Now: r.now, Entries: 4})
		},
		"the forecast ran out of time": func() (*structs.Forecast, error) { return Run(ended, r.log.Store, Options{Now: r.now}) },
	} {
		got, err := f()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if q := got.Requests[len(got.Requests)-1].Latest; q.All != 0 || len(q.Unknown) < len(what) || q.Unknown[:len(what)] != what {
			t.Errorf("%s: %+v", what, q)
		}
		if next := got.Requests[1].Latest.All; next != 0 { // the first one alone starts within the horizon
			t.Errorf("%s: the second one starts %s", what, time.Unix(0, next).UTC())
		}
	}
}
