package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// The rows of `make bench-cluster` (docs/design/numbers.md): a server process that stores its log on disk, asked over HTTP, and
// simulated nodes of another process, if not said otherwise. What asks is a third process on the same machine.

// benchServer starts a server on disk, with more in its block "server". Its nodes are other processes'.
func benchServer(b *testing.B, more ...string) *harness.Agent {
	b.Helper()
	a := harness.NewAgent(b, false, "log_level = \"WARN\"\nenable_debug = true\nserver {\n  enabled = true\n  bootstrap_expect = 1\n"+strings.Join(more, "\n")+"\n}\nlimits {\n  http_max_conns_per_client = 0\n  rpc_max_conns_per_client = 0\n}\n")
	keep := http.DefaultTransport.(*http.Transport).Clone() // it is one
	keep.MaxIdleConnsPerHost = 64                           // by default three are kept, and whoever else asks at once dials each time
	conf := nomad.DefaultConfig()
	conf.Address, conf.HttpClient = a.HTTP, &http.Client{Transport: keep}
	var err error
	if a.Nomad, err = nomad.NewClient(conf); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(keep.CloseIdleConnections)
	a.Start()
	harness.Within(b, 20*time.Second, "a leader", func(ctx context.Context) error { return a.API.Status().WaitLeader(ctx) })
	return a
}

// benchWorld is a server, with more in its block "server", and n simulated nodes, all of them ready.
func benchWorld(b *testing.B, n int, layout string, more ...string) *harness.Agent {
	b.Helper()
	a := benchServer(b, more...)
	populate(b, a, n, layout)
	return a
}

// populate starts n simulated nodes, of one process, and waits until all are ready.
func populate(b *testing.B, a *harness.Agent, n int, layout string) *harness.Agent {
	b.Helper()
	began := time.Now()
	nodes := a.AttachNodes(strings.Replace(layout, "COUNT", strconv.Itoa(n), 1))
	tick := time.NewTicker(500 * time.Millisecond) // a list of 50,000 costs the server something
	defer tick.Stop()
	for {
		list, _, err := a.API.Nodes().List(b.Context(), nil)
		if err != nil {
			b.Fatal(err)
		}
		ready := 0
		for _, node := range list {
			if node.Status == structs.NodeStatusReady {
				ready++
			}
		}
		if ready == n {
			b.Logf("%d nodes are ready after %v", n, time.Since(began).Round(time.Millisecond))
			return nodes
		}
		if time.Since(began) > 5*time.Minute {
			b.Fatalf("%d of %d nodes are ready after %v\n%s", ready, n, time.Since(began), a.Log.Tail(20))
		}
		<-tick.C
	}
}

const (
	smallNodes = "shape \"small\" {\n  count = COUNT\n  cores = 16\n  mhz = 2000\n  memory = 65536\n  disk = 200000\n}\n"
	gpuNodes   = "shape \"dgx\" {\n  count = COUNT\n  cores = 128\n  mhz = 2000\n  memory = 1048576\n  disk = 2000000\n" +
		"  gpus \"nvidia/gpu/H100\" {\n    count = 8\n    sockets = 2\n    switches_per_socket = 2\n    memory = 81920\n  }\n}\n"
)

// pretendJob is a job whose tasks run on simulated nodes.
func pretendJob(id string, count int) *nomad.Job {
	job := harness.OfficialJob(id, "")
	job.TaskGroups[0].Count = &count
	job.TaskGroups[0].Tasks[0].Driver = "mock_driver"
	job.TaskGroups[0].Tasks[0].Config = map[string]any{"run_for": "24h"}
	return job
}

func register(b *testing.B, a *harness.Agent, job *nomad.Job) {
	b.Helper()
	if _, _, err := a.Nomad.Jobs().Register(job, nil); err != nil {
		b.Fatal(err)
	}
}

// summed waits until a job's summary counts enough. It is asked instead of the list of all allocations: reading that would be
// most of what is measured.
func summed(b *testing.B, a *harness.Agent, job string, want int, count func(nomad.TaskGroupSummary) int) {
	b.Helper()
	q := &nomad.QueryOptions{}
	for began := time.Now(); ; {
		sum, meta, err := a.Nomad.Jobs().Summary(job, q)
		if err != nil {
			b.Fatal(err)
		}
		if count(sum.Summary["g"]) == want {
			return
		}
		if time.Since(began) > 5*time.Minute {
			b.Fatalf("job %s after %v: %+v", job, time.Since(began), sum.Summary["g"])
		}
		q.WaitIndex, q.WaitTime = meta.LastIndex, time.Second
	}
}

func committed(g nomad.TaskGroupSummary) int { return g.Starting + g.Running }

func areRunning(g nomad.TaskGroupSummary) int { return g.Running }

// BenchmarkWholeJob is one job of 10,000 instances, from its registration until all are committed, and until all run.
func BenchmarkWholeJob(b *testing.B) {
	for _, nodes := range []int{1000, 5000} {
		b.Run(fmt.Sprintf("nodes=%dk", nodes/1000), func(b *testing.B) {
			a := benchWorld(b, nodes, smallNodes)
			for i := range b.N {
				id := "big-" + strconv.Itoa(i)
				start := time.Now()
				register(b, a, pretendJob(id, 10_000))
				summed(b, a, id, 10_000, committed)
				b.ReportMetric(time.Since(start).Seconds(), "s-committed")
				summed(b, a, id, 10_000, areRunning)
				b.ReportMetric(time.Since(start).Seconds(), "s-running")
				if _, _, err := a.Nomad.Jobs().Deregister(id, true, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWholeJobs registers 1,000 jobs of one instance with one GPU from 32 sides at once, until all are committed. The cores
// are the server's as far as that can be: what is registered is written down before, and nothing is watched meanwhile.
func BenchmarkWholeJobs(b *testing.B) {
	for _, nodes := range []int{1000, 10_000, 50_000} {
		b.Run(fmt.Sprintf("nodes=%dk", nodes/1000), func(b *testing.B) {
			a := benchWorld(b, nodes, gpuNodes)
			calm(b, a) // that nodes come is not what is measured
			for round := range b.N {
				requests := make([][]byte, 1000)
				for i := range requests {
					job := pretendJob(fmt.Sprintf("gpu-%d-%d", round, i), 1)
					job.TaskGroups[0].Tasks[0].Resources.Devices = []*nomad.RequestedDevice{{Name: "nvidia/gpu"}}
					requests[i] = registration(b, job)
				}
				sides := dial(b, a, 32)
				before := heap(b, a)
				collect := unhurried()
				start, cpu := time.Now(), processorTime(b, a)
				sides.send(b, requests)
				registered := time.Since(start)
				allDecided(b, a)
				took := time.Since(start)
				collect()
				placed(b, a, fmt.Sprintf("gpu-%d-", round), 1000, 1)
				b.ReportMetric(1000/took.Seconds(), "jobs/s")
				b.ReportMetric(1000/registered.Seconds(), "registrations/s")
				b.ReportMetric(float64((processorTime(b, a)-cpu).Microseconds())/1000, "µs-of-the-server/job")
				after := heap(b, a)
				b.ReportMetric((after["TotalAlloc"]-before["TotalAlloc"])/1024/1000, "KiB/job")
				b.ReportMetric((after["Mallocs"]-before["Mallocs"])/1000, "allocs/job")
				b.ReportMetric(after["NumGC"]-before["NumGC"], "collections")
			}
		})
	}
}

// allDecided waits until no evaluation is pending: all that they place was committed before.
func allDecided(b *testing.B, a *harness.Agent) {
	b.Helper()
	tick := time.NewTicker(5 * time.Millisecond) // each look reads all evaluations
	defer tick.Stop()
	for began := time.Now(); ; <-tick.C {
		list, _, err := a.API.Evaluations().List(b.Context(), &api.Query{PerPage: 1, Params: map[string]string{"status": structs.EvalStatusPending}})
		if err != nil {
			b.Fatal(err)
		}
		if len(list) == 0 {
			return
		}
		if time.Since(began) > 5*time.Minute {
			b.Fatalf("evaluation %s of job %s is pending after %v", list[0].ID, list[0].JobID, time.Since(began))
		}
	}
}

// registration is the HTTP request that registers a job, as the official client would send it.
func registration(b *testing.B, job *nomad.Job) []byte {
	b.Helper()
	body, err := json.Marshal(&nomad.JobRegisterRequest{Job: job})
	if err != nil {
		b.Fatal(err)
	}
	return fmt.Appendf(nil, "PUT /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// sides are connections to an agent's HTTP API.
type sides []net.Conn

func dial(b *testing.B, a *harness.Agent, n int) (list sides) {
	b.Helper()
	for range n {
		c, err := (&net.Dialer{}).DialContext(b.Context(), "tcp", strings.TrimPrefix(a.HTTP, "http://"))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c.Close() }) //nolint:errcheck // it may have been closed
		list = append(list, c)
	}
	return list
}

// send sends requests, over each connection one after the other, and waits for all answers.
func (s sides) send(b *testing.B, requests [][]byte) {
	b.Helper()
	var next atomic.Int64
	errs := make(chan error, len(s))
	for _, c := range s {
		go func() {
			for answers := bufio.NewReader(c); ; {
				i := int(next.Add(1)) - 1
				if i >= len(requests) {
					errs <- nil
					return
				}
				if err := exchange(c, answers, requests[i]); err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	for range s {
		if err := <-errs; err != nil {
			b.Fatal(err)
		}
	}
}

func exchange(c net.Conn, answers *bufio.Reader, request []byte) error {
	if _, err := c.Write(request); err != nil {
		return err
	}
	answer, err := http.ReadResponse(answers, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // read only
	reported, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, reported)
	}
	return err
}

// unhurried has this process, which only asks, collect no garbage until the end, as the cores are those of the server.
func unhurried() (end func()) {
	runtime.GC()
	was := debug.SetGCPercent(-1)
	return func() { debug.SetGCPercent(was) }
}

// placed sees to it that each of so many jobs has as many allocations that are to run as it asked for.
func placed(b *testing.B, a *harness.Agent, prefix string, many, each int) {
	b.Helper()
	jobs := map[string]int{}
	for q := (&api.Query{PerPage: 5000}); ; {
		allocs, meta, err := a.API.Allocations().List(b.Context(), q)
		if err != nil {
			b.Fatal(err)
		}
		for _, x := range allocs {
			if strings.HasPrefix(x.JobID, prefix) && x.DesiredStatus == structs.AllocDesiredRun {
				jobs[x.JobID]++
			}
		}
		if q.NextToken = meta.NextToken; q.NextToken == "" {
			break
		}
	}
	for id, n := range jobs {
		if n != each {
			b.Fatalf("job %s has %d allocations, not %d", id, n, each)
		}
	}
	if len(jobs) != many {
		b.Fatalf("%d of %d jobs are placed", len(jobs), many)
	}
}

// BenchmarkWholeRegistration is what one client waits for each of 2,000 registrations, one after the other.
func BenchmarkWholeRegistration(b *testing.B) {
	a := benchWorld(b, 1000, smallNodes)
	for round := range b.N {
		var took []time.Duration
		for i := range 2000 {
			job := pretendJob(fmt.Sprintf("one-%d-%d", round, i), 1)
			start := time.Now()
			register(b, a, job)
			took = append(took, time.Since(start))
		}
		reportMs(b, took)
	}
}

// reportMs reports the median and the 99th percentile.
func reportMs(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-p50")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms-p99")
}

// BenchmarkWholeSteady registers 100 jobs of 10 instances in each of 60 seconds: how long it takes from the registration until
// the 10 are committed.
func BenchmarkWholeSteady(b *testing.B) {
	a := benchWorld(b, 1000, smallNodes)
	for round := range b.N {
		reportMs(b, steady(b, a, fmt.Sprintf("steady-%d-", round), 60, 10))
	}
}

// steady registers 100 jobs, of so many instances each, in each of some seconds, and returns how long it took from the registration of each until its
// instances were committed.
func steady(b *testing.B, a *harness.Agent, prefix string, seconds, instances int) (took []time.Duration) {
	b.Helper()
	const rate = 100
	w := watchEvals(b, a)
	began := map[string]time.Time{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	errs := make(chan error, rate*seconds)
	tick := time.NewTicker(time.Second / rate)
	for i := range rate * seconds {
		<-tick.C
		wg.Go(func() {
			id := prefix + strconv.Itoa(i)
			mu.Lock()
			began[id] = time.Now()
			mu.Unlock()
			if _, _, err := a.Nomad.Jobs().Register(pretendJob(id, instances), nil); err != nil {
				errs <- err
			}
		})
	}
	tick.Stop()
	wg.Wait()
	close(errs)
	for err := range errs {
		b.Fatal(err)
	}
	done := w.all(b, rate*seconds)
	placed(b, a, prefix, rate*seconds, instances)
	for id, start := range began {
		took = append(took, done[id].Sub(start))
	}
	return took
}

// BenchmarkWholeDev starts development agents: until one leads, and then from a job's registration until its task is finished.
func BenchmarkWholeDev(b *testing.B) {
	for range b.N {
		a := harness.NewAgent(b, true, "")
		start := time.Now()
		a.Start()
		harness.Within(b, 10*time.Second, "a leader", func(ctx context.Context) error { return leads(ctx, a) })
		b.ReportMetric(time.Since(start).Seconds()*1000, "ms-leader")
		a.WaitReady(1)
		job := harness.OfficialJob("first", "echo done")
		job.Type = harness.Ptr("batch")
		start = time.Now()
		register(b, a, job)
		summed(b, a, "first", 1, func(g nomad.TaskGroupSummary) int { return g.Complete })
		b.ReportMetric(time.Since(start).Seconds()*1000, "ms-finished")
	}
}

func leads(ctx context.Context, a *harness.Agent) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.HTTP+"/v1/status/leader", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close() // only the code is wanted
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("code %d", resp.StatusCode)
	}
	return nil
}

// BenchmarkWholeProcesses is a batch job of 100 real processes that end at once, on one node, until all are complete.
func BenchmarkWholeProcesses(b *testing.B) {
	a := harness.NewAgent(b, false, "log_level = \"WARN\"\n"+harness.ServerAndClient)
	a.Start()
	a.WaitReady(1)
	for i := range b.N {
		id := "true-" + strconv.Itoa(i)
		job := harness.OfficialJob(id, "exit 0")
		job.Type, job.TaskGroups[0].Count = harness.Ptr("batch"), harness.Ptr(100)
		job.TaskGroups[0].Tasks[0].Resources = &nomad.Resources{CPU: harness.Ptr(10), MemoryMB: harness.Ptr(16)}
		start := time.Now()
		register(b, a, job)
		summed(b, a, id, 100, func(g nomad.TaskGroupSummary) int { return g.Complete })
		b.ReportMetric(time.Since(start).Seconds(), "s-complete")
	}
}

// BenchmarkWholeNodeLost kills an agent with the node that holds a job: how long until it runs on another.
func BenchmarkWholeNodeLost(b *testing.B) {
	for range b.N {
		all := harness.StartServers(b, 3, "")
		clients := map[string]*harness.Agent{}
		for i, name := range []string{"left", "right"} {
			clients[name] = harness.StartClient(b, name, 1, all[i])
		}
		all[0].WaitReady(2)
		id := "held"
		register(b, all[0], pretendJob(id, 1))
		summed(b, all[0], id, 1, areRunning)
		allocs, _, err := all[0].API.Jobs().Allocations(b.Context(), id, true, nil)
		if err != nil || len(allocs) != 1 {
			b.Fatalf("%d allocations, %v", len(allocs), err)
		}
		for name, c := range clients {
			if strings.HasPrefix(allocs[0].NodeName, name) {
				c.Kill()
			}
		}
		start := time.Now()
		harness.Within(b, time.Minute, "the instance on the other node", func(ctx context.Context) error {
			now, _, err := all[0].API.Jobs().Allocations(ctx, id, true, nil)
			if err != nil {
				return err
			}
			for _, x := range now {
				if x.ID != allocs[0].ID && x.ClientStatus == structs.AllocClientRunning {
					return nil
				}
			}
			return fmt.Errorf("%d allocations", len(now))
		})
		b.ReportMetric(time.Since(start).Seconds(), "s-elsewhere")
	}
}

// BenchmarkWholeQueries is what a server computes while 10,000 blocking queries wait for what does not change.
func BenchmarkWholeQueries(b *testing.B) {
	const many, lasting = 10_000, 20 * time.Second
	a := benchServer(b)
	register(b, a, pretendJob("still", 1))
	calm(b, a) // its evaluation changes it once more
	jobs, meta, err := a.API.Jobs().List(b.Context(), nil)
	if err != nil || len(jobs) != 1 {
		b.Fatalf("%d jobs, %v", len(jobs), err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	b.Cleanup(func() { cancel(); wg.Wait() })
	early := make(chan error, many)
	for range many {
		wg.Go(func() {
			_, _, err := a.API.Jobs().List(ctx, &api.Query{Index: meta.Index, Wait: 9 * time.Minute})
			if ctx.Err() == nil {
				early <- errors.Join(errors.New("a query has not waited"), err)
			}
		})
	}
	harness.Within(b, 2*time.Minute, "all queries waiting", func(context.Context) error {
		if n := sockets(a); n < many {
			return fmt.Errorf("the server has %d sockets", n)
		}
		return nil
	})
	for range b.N {
		before := processorTime(b, a)
		select {
		case err := <-early:
			b.Fatal(err)
		case <-time.After(lasting): // what is measured is what happens while nothing does
		}
		b.ReportMetric(100*float64(processorTime(b, a)-before)/float64(lasting), "%-of-a-core")
	}
	now, _ := memory(b, a)
	b.ReportMetric(now, "MiB")
}
