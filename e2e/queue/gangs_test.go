package queue

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

var gangLayouts = []harness.GangLayout{
	{GPUs: []int{1, 1}, Count: 80},
	{GPUs: []int{1, 1, 1, 1}, Count: 70},
	{GPUs: []int{2, 2}, PCIe: true, Count: 70},
	{GPUs: []int{2, 2, 2}, Count: 60},
	{GPUs: []int{4, 4}, Count: 50},
	{GPUs: []int{4, 4, 4, 4}, Rack: true, Count: 40},
	{GPUs: []int{8, 8}, Rack: true, Count: 30},
	{GPUs: []int{8, 8, 8}, Count: 20},
	{GPUs: []int{1, 1, 1, 1, 1, 1}, Min: 3, Count: 50},
	{GPUs: []int{4, 2, 2}, Count: 30}, // in two groups
}

func need(s harness.GangLayout) int {
	if s.Min > 0 {
		return s.Min
	}
	return len(s.GPUs)
}

// fits reports whether members of these sizes, largest first, find room in what is free. Sizes divide one another, so that
// taking the largest first, each wherever it fits, finds room if there is any.
func fits(v *harness.GPUView, sizes []int, rack, pcie bool) bool {
	free := map[string]map[string]int{} // where all of them go → where one goes → free GPUs
	for _, g := range v.GPUs {
		all, one := "", g.Node
		if rack {
			all = g.Rack
		}
		if pcie {
			one += "/" + g.Cell
		}
		if free[all] == nil {
			free[all] = map[string]int{}
		}
		if len(g.Owners) == 0 {
			free[all][one]++
		}
	}
	for _, places := range free {
		left := len(sizes)
		for _, size := range sizes {
			for at := range places {
				if places[at] >= size {
					places[at] -= size
					left--
					break
				}
			}
		}
		if left == 0 {
			return true
		}
	}
	return false
}

// TestFits checks the test's own solver.
func TestFits(t *testing.T) {
	t.Parallel()
	v := &harness.GPUView{}
	add := func(rack, node, cell string, free, used int) {
		for i := range free + used {
			g := harness.GPU{Rack: rack, Node: node, Cell: cell}
			if i < used {
				g.Owners = []*structs.DeviceUsage{{}}
			}
			v.GPUs = append(v.GPUs, g)
		}
	}
	add("r1", "a", "p0", 2, 0)
	add("r1", "a", "p1", 1, 1)
	add("r1", "b", "p0", 1, 1)
	add("r2", "c", "p0", 2, 2)
	f := func(want, rack, pcie bool, sizes ...int) {
		t.Helper()
		if got := fits(v, sizes, rack, pcie); got != want {
			t.Errorf("%v, rack %v, pcie %v: %v", sizes, rack, pcie, got)
		}
	}
	f(true, false, false, 2, 2, 1, 1)
	f(false, false, false, 2, 2, 2)
	f(false, false, false, 4)
	f(true, true, false, 2, 1, 1)
	f(false, true, false, 2, 2)
	f(true, false, true, 2, 2)
	f(false, true, true, 2, 2)
	f(false, false, true, 3)
}

// gangTrial is 500 gangs and what became of them.
type gangTrial struct {
	*harness.Agent
	layouts map[string]harness.GangLayout
	stopped map[string]bool
	clients []*api.Client
	watch   *gangWatch
}

// split does something for each of the jobs, as 20 clients at once, which look at all allocations now and then.
func (g *gangTrial) split(ids []string, f func(c *api.Client, id string) error) {
	g.T.Helper()
	errs := make(chan error, 2*len(ids))
	var wg sync.WaitGroup
	for i, c := range g.clients {
		wg.Go(func() {
			for at := i; at < len(ids); at += len(g.clients) {
				errs <- f(c, ids[at])
				if i%4 == 0 && at/len(g.clients)%12 == 11 { // not oftener: a list is large
					errs <- g.watch.list(g.T.Context(), c)
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			g.T.Fatal(err)
		}
	}
}

// settled waits until nobody decides anything and every task that should run does, and gives what the cluster looks like and
// how many members each job has then. No gang that waits may fit into what is free.
func (g *gangTrial) settled() (v *harness.GPUView, members map[string]int) {
	g.T.Helper()
	harness.Within(g.T, 30*time.Second, "all that fits running", func(ctx context.Context) error {
		if err := decided(ctx, g.Agent); err != nil {
			return err
		}
		allocs, _, err := g.API.Allocations().List(ctx, nil)
		if err != nil {
			return err
		}
		members = map[string]int{}
		for _, alloc := range allocs {
			switch alloc.DesiredStatus + "/" + alloc.ClientStatus {
			case "run/running":
				members[alloc.JobID]++
			case "stop/complete":
			default:
				return fmt.Errorf("%s is %s/%s", alloc.Name, alloc.DesiredStatus, alloc.ClientStatus)
			}
		}
		if v, err = g.ReadGPUs(ctx); err != nil {
			return err
		}
		return g.allThatFits(v, members)
	})
	return v, members
}

func (g *gangTrial) allThatFits(v *harness.GPUView, members map[string]int) error {
	racks, cells := map[string]string{}, map[string]string{}
	for _, one := range v.GPUs {
		for _, h := range one.Owners {
			cell := one.Node + "/" + one.Cell
			if at := cmp.Or(racks[h.JobID], one.Rack); g.layouts[h.JobID].Rack && at != one.Rack {
				g.T.Fatalf("%s must be in one rack, and is in %s and %s", h.JobID, at, one.Rack)
			}
			if at := cmp.Or(cells[h.AllocID], cell); g.layouts[h.JobID].PCIe && at != cell {
				g.T.Fatalf("%s must be under one switch, and is under %s and %s", h.Name, at, cell)
			}
			racks[h.JobID], cells[h.AllocID] = one.Rack, cell
		}
	}
	for id, s := range g.layouts {
		n := members[id]
		switch {
		case g.stopped[id] && n > 0:
			return fmt.Errorf("%d members of %s run, which was stopped", n, id)
		case g.stopped[id] || n == len(s.GPUs):
		case n == 0 && fits(v, s.GPUs[:need(s)], s.Rack, s.PCIe):
			return fmt.Errorf("%s waits, of %v GPUs, and fits: free are %s", id, s.GPUs, v.Free)
		case n > 0 && n < need(s):
			return fmt.Errorf("%d members of %s run, which needs %d", n, id, need(s))
		case n > 0 && fits(v, s.GPUs[:1], s.Rack, s.PCIe):
			return fmt.Errorf("%d of %d members of %s run, and another fits: free are %s", n, len(s.GPUs), id, v.Free)
		}
	}
	return nil
}

// TestFiveHundredGangs: the trial on one server with 8 workers.
func TestFiveHundredGangs(t *testing.T) {
	t.Parallel()
	fiveHundredGangs(t, func(n int, nodes string) harness.Servers {
		return harness.Servers{harness.StartSimulated(t, n, strings.Replace(harness.PatientServer, "{\n", "{\n  num_schedulers = 8\n", 1), nodes)}
	})
}

// TestFiveHundredGangsOfThreeServers: the trial with 3 workers on each of three servers. Those of followers decide on what
// their own server knows, which is behind what the leader commits.
func TestFiveHundredGangsOfThreeServers(t *testing.T) {
	t.Parallel()
	fiveHundredGangs(t, func(n int, nodes string) harness.Servers {
		all := harness.StartServers(t, 3, strings.Replace(harness.PatientServer, "{\n", "{\n  num_schedulers = 3\n", 1))
		lead := all.Leader(t)
		lead.AttachNodes(nodes)
		lead.WaitReady(n)
		return append(harness.Servers{lead}, all.Except(lead)...)
	})
}

// fiveHundredGangs: 500 gangs of mixed sizes are registered at once by 20 clients, on a cluster that holds half of them. At no
// index is there half a gang, or a GPU that two have; all that fits runs. When what runs is stopped, the others come; when all
// are stopped, every node is one free cell again. start gives the servers of a cluster with the nodes, the leader first.
func fiveHundredGangs(t *testing.T, start func(n int, nodes string) harness.Servers) {
	layouts, ids, mins, wanted := map[string]harness.GangLayout{}, []string{}, map[string]int{}, 0
	for kind, s := range gangLayouts {
		many := s.Count
		if harness.Raced {
			many /= 5 // all is ten times as slow
		}
		for i := range many {
			id := fmt.Sprintf("gang-%d-%d", kind, i)
			layouts[id], mins[id] = s, need(s)
			ids = append(ids, id)
			for _, n := range s.GPUs {
				wanted += n
			}
		}
	}
	slices.Sort(ids)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, seed))
	r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	const racks = 4
	each := (wanted/2 + 8*racks - 1) / (8 * racks)
	nodes := ""
	for i := range racks {
		nodes += harness.DGXNodes("n"+strconv.Itoa(i), each, "r"+strconv.Itoa(i))
	}
	all := start(racks*each, nodes)
	a := all[0]
	g := &gangTrial{Agent: a, layouts: layouts, stopped: map[string]bool{}}
	for i := range 20 {
		c, err := api.New(api.Config{Address: all[i%len(all)].HTTP})
		if err != nil {
			t.Fatal(err)
		}
		g.clients = append(g.clients, c)
	}
	g.watch = watchGangs(t, all[len(all)-1], mins)

	began := time.Now()
	g.split(ids, func(c *api.Client, id string) error {
		_, err := c.Jobs().Register(t.Context(), &structs.JobRegisterRequest{Job: layouts[id].Job(id)})
		return err
	})
	t.Logf("%d jobs for %d GPUs on %d nodes registered after %v", len(ids), wanted, racks*each, time.Since(began).Round(time.Millisecond))
	rounds := 0
	for len(g.stopped) < len(ids) {
		v, members := g.settled()
		var running []string
		for _, id := range ids {
			if members[id] > 0 {
				running = append(running, id)
			}
		}
		t.Logf("after %v %d gangs run, %d wait; free: %s", time.Since(began).Round(time.Millisecond), len(running),
			len(ids)-len(g.stopped)-len(running), v.Free)
		if rounds++; len(running) == 0 || (rounds == 1 && len(running) == len(ids)) {
			t.Fatalf("in round %d %d of %d gangs run", rounds, len(running), len(ids)-len(g.stopped))
		}
		if rounds == 1 {
			g.plansOf(all)
		}
		g.split(running, func(c *api.Client, id string) error {
			_, err := c.Jobs().Deregister(t.Context(), id, false, nil)
			return err
		})
		t.Logf("stopped after %v", time.Since(began))
		for _, id := range running {
			g.stopped[id] = true
		}
	}
	g.settled()
	a.WaitFree(fmt.Sprintf("%d node of 8", racks*each))
	g.watch.agrees(t, a)
	lines, lists := g.watch.reported()
	t.Logf("after %v all are stopped; the watcher saw %d indexes and %d lists", time.Since(began).Round(time.Millisecond), lines, lists)
}

// plansOf says what the workers of each server have done so far.
func (g *gangTrial) plansOf(all harness.Servers) {
	g.T.Helper()
	refused, _ := counter(g.Agent, "nomad_nomad_plan_refused")
	nodes, _ := counter(g.Agent, "nomad_nomad_plan_node_rejected")
	g.T.Logf("plans refused: %v; nodes refused: %v", refused, nodes)
	for i, one := range all {
		plans, ok := counter(one, "nomad_nomad_worker_submit_plan_count")
		g.T.Logf("server %d: %v plans of its workers", i, plans)
		if !ok || plans == 0 {
			g.T.Errorf("the workers of server %d made no plan", i)
		}
	}
}

// counter reads one number from the metrics; ok says whether there is one of that name.
func counter(a *harness.Agent, name string) (value float64, ok bool) {
	a.T.Helper()
	body, err := a.API.Raw(a.T.Context(), "/v1/metrics", (&api.Query{Params: map[string]string{"format": "prometheus"}}))
	if err != nil {
		a.T.Fatal(err)
	}
	defer body.Close() //nolint:errcheck // read only
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		found, value, _ := strings.Cut(lines.Text(), " ")
		if found, _, _ = strings.Cut(found, "{"); found == name {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				a.T.Fatal(err)
			}
			return n, true
		}
	}
	return 0, false
}
