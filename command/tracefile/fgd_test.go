package tracefile_test

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/trace"
	"github.com/nomadish/nomadish/structs"
)

// fgd is fragmentation gradient descent as published (ATC'23), on plain arrays: what the policy
// least-fragmentation is compared with. A task goes to the node, and its share to the device, where
// the fragmentation grows least: the growth goes through a sigmoid and is cut to whole percent, and of
// equal nodes the one of the lowest rank is taken, of equal devices the first. Typical tasks are known
// beforehand. It shares no code with the scheduler, nor its ledger.
type fgd struct {
	nodes   []fgdNode
	rank    []int // by node
	typical []fgdTask
	tasks   map[string]*fgdScores // what was found for tasks that are alike
	total   int
}

type fgdNode struct {
	model       string
	cpu, memory int64
	gpus        []int // what is left of each, in thousandths
	version     int   // counts the tasks that it was given
	frag        float64
	fragOf      int // the version that frag is of
}

// fgdTask is a typical task. Its memory does not count, as published.
type fgdTask struct {
	cpu         int64
	gpus, share int
	models      []string
	part        float64 // of all tasks
}

// fgdScores is, by node, what a task scores there, as of a version of the node.
type fgdScores struct {
	version []int
	score   []int // -1: it does not fit
	device  []int
}

// newFGD makes one of nodes and the tasks that will come. rank settles equal scores by the node's
// name; nil: nodes in their order.
func newFGD(nodes []*structs.Node, rank map[string]int, rows []*trace.Row) *fgd {
	f := &fgd{tasks: map[string]*fgdScores{}}
	for i, n := range nodes {
		m := fgdNode{cpu: n.NodeResources.Cpu.CpuShares, memory: n.NodeResources.Memory.MemoryMB, version: 1}
		for _, d := range n.NodeResources.Devices {
			m.model = d.Name
			for range d.Instances {
				m.gpus = append(m.gpus, structs.DeviceShareWhole)
				f.total += structs.DeviceShareWhole
			}
		}
		f.nodes = append(f.nodes, m)
		if at, known := rank[n.Name]; known {
			i = at
		}
		f.rank = append(f.rank, i)
	}
	f.learn(rows)
	return f
}

// popular is the part of all tasks that typical ones make up, the commonest first.
const popular = 0.95

// learn finds the typical tasks, those without GPUs among them.
func (f *fgd) learn(rows []*trace.Row) {
	at, all := map[string]int{}, []fgdTask{}
	for _, r := range rows {
		key := fgdKey(r, false)
		i, known := at[key]
		if !known {
			i = len(all)
			at[key] = i
			all = append(all, fgdTask{cpu: int64(r.CPU), gpus: r.GPUs, share: fgdShare(r), models: r.Models})
		}
		all[i].part++
	}
	slices.SortStableFunc(all, func(a, b fgdTask) int { return cmp.Compare(b.part, a.part) })
	sum := 0.0
	for i := range all {
		if sum >= popular*float64(len(rows)) {
			all = all[:i]
			break
		}
		sum += all[i].part
	}
	for i := range all {
		all[i].part /= sum
	}
	f.typical = all
}

func fgdShare(r *trace.Row) int {
	if r.GPUs > 0 && r.Share == 0 {
		return structs.DeviceShareWhole
	}
	return r.Share
}

func fgdKey(r *trace.Row, memory bool) string {
	key := []byte(strings.Join(r.Models, "|"))
	numbers := []int{r.CPU, r.GPUs, fgdShare(r)}
	if memory {
		numbers = append(numbers, r.MemoryMB)
	}
	for _, n := range numbers {
		for range 4 {
			key, n = append(key, byte(n)), n>>8
		}
	}
	return string(key)
}

// mayUse reports whether a node has GPUs of a model that a task takes.
func (n *fgdNode) mayUse(gpus int, models []string) bool {
	return gpus == 0 || len(n.gpus) > 0 && (len(models) == 0 || slices.Contains(models, n.model))
}

// devices counts those of which so much is left.
func devices(left []int, share int) (n int) {
	for _, d := range left {
		if d >= share {
			n++
		}
	}
	return n
}

// fragmentation is how much of what is left of a node's devices its typical tasks cannot use, each weighted
// by its part: all of it if the task cannot run there or takes no GPU, else what is on devices too small for it.
func (f *fgd) fragmentation(n *fgdNode, cpu int64, left []int) (sum float64) {
	idle := 0
	for _, d := range left {
		idle += d
	}
	for i := range f.typical {
		t := &f.typical[i]
		unusable := idle
		if t.gpus > 0 && t.cpu <= cpu && n.mayUse(t.gpus, t.models) && devices(left, t.share) >= t.gpus {
			unusable = 0
			for _, d := range left {
				if d < t.share {
					unusable += d
				}
			}
		}
		sum += t.part * float64(unusable)
	}
	return sum
}

// score is what a task scores on a node, and the device that its share goes to; -1: it does not fit.
func (f *fgd) score(n *fgdNode, r *trace.Row) (score, device int) {
	share := fgdShare(r)
	if int64(r.CPU) > n.cpu || int64(r.MemoryMB) > n.memory || !n.mayUse(r.GPUs, r.Models) || devices(n.gpus, share) < r.GPUs {
		return -1, 0
	}
	if n.fragOf != n.version {
		n.frag, n.fragOf = f.fragmentation(n, n.cpu, n.gpus), n.version
	}
	score = -1
	left := make([]int, len(n.gpus))
	for d := range max(1, len(n.gpus)) {
		copy(left, n.gpus)
		if share > 0 && share < structs.DeviceShareWhole {
			if left[d] < share {
				continue
			}
			left[d] -= share
		} else {
			fgdTakeWhole(left, r.GPUs)
		}
		grows := f.fragmentation(n, n.cpu-int64(r.CPU), left) - n.frag
		if s := int(100 / (1 + math.Exp(grows/structs.DeviceShareWhole))); s > score {
			score, device = s, d
		}
		if share == 0 || share == structs.DeviceShareWhole {
			break
		}
	}
	return score, device
}

func fgdTakeWhole(left []int, n int) {
	for d := range left {
		if n > 0 && left[d] == structs.DeviceShareWhole {
			left[d], n = 0, n-1
		}
	}
}

// place gives a task to a node; false: it fits nowhere.
func (f *fgd) place(r *trace.Row) bool {
	key := fgdKey(r, true)
	known := f.tasks[key]
	if known == nil {
		known = &fgdScores{make([]int, len(f.nodes)), make([]int, len(f.nodes)), make([]int, len(f.nodes))}
		f.tasks[key] = known
	}
	best := -1
	for i := range f.nodes {
		n := &f.nodes[i]
		if known.version[i] != n.version {
			known.version[i] = n.version
			known.score[i], known.device[i] = f.score(n, r)
		}
		s := known.score[i]
		if s >= 0 && (best < 0 || s > known.score[best] || s == known.score[best] && f.rank[i] < f.rank[best]) {
			best = i
		}
	}
	if best < 0 {
		return false
	}
	n := &f.nodes[best]
	n.version++
	n.cpu, n.memory = n.cpu-int64(r.CPU), n.memory-int64(r.MemoryMB)
	if share := fgdShare(r); share > 0 && share < structs.DeviceShareWhole {
		n.gpus[known.device[best]] -= share
	} else {
		fgdTakeWhole(n.gpus, r.GPUs)
	}
	return true
}

// fgdFigures is what a replay of the published method found.
type fgdFigures struct {
	tasks, failed, milli int
	atFull               float64 // part of all GPUs that was allocated when as much was requested as there is
}

// run lets tasks arrive until so many times the GPUs that there are were requested.
func (f *fgd) run(rows []*trace.Row, until float64) (out fgdFigures) {
	arrived, at := 0, 0
	for _, r := range rows {
		out.tasks++
		arrived += r.GPUs * fgdShare(r)
		if f.place(r) {
			out.milli += r.GPUs * fgdShare(r)
		} else {
			out.failed++
		}
		if int(math.Round(100*float64(arrived)/float64(f.total))) == 100 {
			at++
			out.atFull += float64(out.milli) / float64(f.total)
		}
		if float64(arrived) >= until*float64(f.total) {
			break
		}
	}
	out.atFull /= float64(max(1, at))
	return out
}
