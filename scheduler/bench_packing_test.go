package scheduler_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// gpusPerNode of the nodes that are packed.
const gpusPerNode = 8

// packer is a cluster of nodes with eight GPUs each that takes jobs one by one: each
// is an evaluation, judged and counted as the servers would. It keeps its own
// account of who holds which GPU.
type packer struct {
	tb     testing.TB
	w      *scheduler.World
	nodes  int
	kind   string
	rng    *rand.Rand
	jobs   uint64
	allocs []*structs.Allocation // that run
	owner  map[string]string     // allocation by GPU
}

func newPacker(tb testing.TB, nodes int, kind string, seed uint64) *packer {
	return &packer{
		tb: tb, w: worldSpec{"dgx", fillNone, nodes, 0}.build(), nodes: nodes, kind: kind,
		rng: rand.New(rand.NewPCG(seed, 7)), owner: map[string]string{},
	}
}

// register decides and commits a job of instances of so many GPUs each, and gives how
// many of them found room.
func (p *packer) register(instances, each, cpu, memoryMB int) int {
	p.jobs++
	job := benchJob(p.kind, instances, gpus(each, ""), volume(cpu, memoryMB))
	job.ID = fmt.Sprintf("job-%d", p.jobs)
	plan := schedule(p.tb, p.w, job, p.jobs)
	p.w = commit(p.tb, p.w, plan)
	for _, b := range plan.Place {
		for i := range b.Instances {
			p.started(b.Allocation(i), each)
		}
	}
	return countPlaced(plan)
}

func (p *packer) started(a *structs.Allocation, want int) {
	ids := deviceIDs(a)
	if len(ids) != want {
		p.tb.Fatalf("allocation %s got %v, want %d GPUs", a.ID, ids, want)
	}
	for _, id := range ids {
		if p.owner[id] != "" {
			p.tb.Fatalf("%s is given to %s and to %s", id, p.owner[id], a.ID)
		}
		p.owner[id] = a.ID
	}
	p.allocs = append(p.allocs, a)
}

func deviceIDs(a *structs.Allocation) (ids []string) {
	for _, t := range a.AllocatedResources.Tasks {
		for _, d := range t.Devices {
			ids = append(ids, d.DeviceIDs...)
		}
	}
	return ids
}

// end lets an allocation, any, complete.
func (p *packer) end() {
	i, last := p.rng.IntN(len(p.allocs)), len(p.allocs)-1
	a := *p.allocs[i]
	p.allocs[i] = p.allocs[last]
	p.allocs = p.allocs[:last]
	for _, id := range deviceIDs(&a) {
		delete(p.owner, id)
	}
	a.ClientStatus = structs.AllocClientComplete
	e := p.w.Edit()
	e.UpsertAlloc(&a)
	p.w = e.World()
}

// oneGPU registers a job of one-GPU instances. If they are all alike, each is a job of
// its own; else a job has up to 16 instances, and jobs differ in what else they ask for.
func (p *packer) oneGPU(most int, alike bool) {
	n, cpu, memory := 1, 1000, 4096
	if !alike {
		n, cpu, memory = 1+p.rng.IntN(min(16, most)), 500*(1+p.rng.IntN(32)), 1024*(1+p.rng.IntN(64))
	}
	if got := p.register(n, 1, cpu, memory); got != n {
		p.tb.Fatalf("%d of %d one-GPU instances found room with %d GPUs held", got, n, len(p.owner))
	}
}

// fill registers one-GPU jobs until so many GPUs are held.
func (p *packer) fill(reserved int, alike bool) {
	for len(p.owner) < reserved {
		p.oneGPU(reserved-len(p.owner), alike)
	}
}

// mixed registers jobs of one instance and 1, 2, 4 or 8 GPUs until so many are held, or
// the first that finds no room.
func (p *packer) mixed(reserved int) {
	for len(p.owner) < reserved && p.register(1, 1<<p.rng.IntN(4), 1000, 4096) == 1 {
		continue
	}
}

// wholeNodes returns how many eight-GPU jobs find room, which is one by one until the first that
// does not.
func (p *packer) wholeNodes() (fits int) {
	for fits <= p.nodes && p.register(1, gpusPerNode, 1000, 4096) == 1 {
		fits++
	}
	return fits
}

// churn lets jobs of one GPU arrive and end at random, about as many held as at first:
// the further from that, the likelier the way back.
func (p *packer) churn(events int) {
	target := len(p.owner)
	pull := float64(p.nodes*gpusPerNode) / 40 // GPUs away from it at which only the way back is left
	for range events {
		away := float64(len(p.owner)-target) / pull
		if p.rng.Float64() < 0.5-away/2 && len(p.owner) < p.nodes*gpusPerNode {
			p.oneGPU(1, true)
		} else {
			p.end()
		}
	}
}

// schedule decides an evaluation of a new job.
func schedule(tb testing.TB, w *scheduler.World, job *structs.Job, n uint64) *structs.Plan {
	d := newDecision(job, anyNumber)
	d.ids = n
	plan, _ := d.on(tb, w)
	return plan
}

// BenchmarkPacking is the same at full size, for the table. It reports the worst that
// it saw.
func BenchmarkPacking(b *testing.B) {
	nodes := sizes(1000)[0]
	seed := uint64(0) // differs from run to run of one process
	run := func(name, kind string, percent, events int) {
		b.Run(fmt.Sprintf("%s/%s/nodes=%s", name, kind, thousands(nodes)), func(b *testing.B) {
			fits, ofIdeal := math.Inf(1), math.Inf(1)
			for b.Loop() {
				seed++
				p := newPacker(b, nodes, kind, seed)
				p.fill(nodes*gpusPerNode*percent/100, events > 0 || seed%2 == 0)
				p.churn(events)
				ideal := (nodes*gpusPerNode - len(p.owner)) / gpusPerNode
				got := p.wholeNodes()
				fits, ofIdeal = min(fits, float64(got)), min(ofIdeal, 100*float64(got)/float64(ideal))
			}
			b.ReportMetric(fits, "8-gpu-jobs")
			b.ReportMetric(ofIdeal, "%-of-ideal")
			b.ReportMetric(0, "ns/op")
		})
	}
	for _, kind := range []string{structs.JobTypeBatch, structs.JobTypeService} {
		run("fill-50", kind, 50, 0)
		run("fill-75", kind, 75, 0)
	}
	run("churn-10k-at-75", structs.JobTypeBatch, 75, 10_000)
	b.Run("churn-of-sizes-at-75/nodes="+thousands(nodes), func(b *testing.B) {
		ofIdeal := math.Inf(1)
		for b.Loop() {
			seed++
			p := newPacker(b, nodes, structs.JobTypeBatch, seed)
			reserved := nodes * gpusPerNode * 3 / 4
			p.mixed(reserved)
			for range 10_000 / 8 {
				for range 4 {
					p.end()
				}
				p.mixed(reserved)
			}
			ideal := (nodes*gpusPerNode - len(p.owner)) / gpusPerNode
			ofIdeal = min(ofIdeal, 100*float64(p.wholeNodes())/float64(ideal))
		}
		b.ReportMetric(ofIdeal, "%-of-ideal")
		b.ReportMetric(0, "ns/op")
	})
}
