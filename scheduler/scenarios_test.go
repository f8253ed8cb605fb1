package scheduler_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

var rewrite = flag.Bool("rewrite", false, "write what the scenarios print into their files")

// TestScenarios runs testdata/scenarios/*.txt. Each is a page on what one rule does: comments, commands, and after each command what
// it prints, in lines that begin with two spaces. With -rewrite the files are written anew.
//
//	node NAME cores=N [memory=MiB] | gpus=8 [rack=NAME]   a core has 1000 MHz, and 1000 MiB; 8 GPUs are two sockets of two switches of two
//	down | up NAME
//	bands LOW-HIGH ...            batch jobs preempt lower bands
//	keep-whole                    a job that may stay whole stays whole
//	owns NAMESPACE LEVEL COUNT [NODES]
//	slots PROJECT COUNT
//	license NAME COUNT
//	workflow RESERVE STAGE/STAGE/... [lend=TO[:SHARE],...]   RESERVE is max or sum, a stage the cores of its jobs
//	stage NAME CORES,...          the jobs of a stage of the workflow come
//	job NAME COUNT [namespace= project= priority= cores= memory= gpus= gang=MIN level= license=NAME:N limit=DURATION reclaim=suspend]
//	again NAME                    the job is decided once more
//	ends NAME COUNT               instances complete
//	after DURATION
//	running                       what runs where
//	reservation                   what the workflow uses, lends, and has idle, in cores
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d scenarios: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := &scenario{newGPUWorkflows(t, chainOf(t), 0)}
			var got strings.Builder
			for line := range strings.Lines(string(data)) {
				if strings.HasPrefix(line, "  ") {
					continue
				}
				got.WriteString(line)
				if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(line, "#") {
					for _, l := range s.run(words[0], words[1:]) {
						fmt.Fprintf(&got, "  %s\n", l)
					}
				}
			}
			if *rewrite {
				if err := os.WriteFile(file, []byte(got.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			} else if got.String() != string(data) {
				t.Errorf("it printed\n%s", got.String())
			}
		})
	}
}

// scenario is the cluster of a scenario.
type scenario struct{ *gpuWorkflows }

// options reads KEY=VALUE.
func (s *scenario) options(words []string) map[string]string {
	out := map[string]string{}
	for _, w := range words {
		key, value, found := strings.Cut(w, "=")
		if !found {
			s.t.Fatalf("%q is no option", w)
		}
		out[key] = value
	}
	return out
}

func (s *scenario) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *scenario) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

// run runs a command, and returns the lines that it prints.
func (s *scenario) run(command string, args []string) []string {
	switch command {
	case "node":
		s.addNode(args[0], s.options(args[1:]))
	case "down":
		s.changeNode(args[0], down)
	case "up":
		s.changeNode(args[0], up)
	case "bands", "keep-whole":
		s.bandsAre(command, args)
	case "owns":
		var nodes []int
		if len(args) > 3 {
			nodes = []int{s.number(args[3])}
		}
		s.owns(args[0], args[1], s.number(args[2]), nodes...)
	case "slots":
		s.gives(args[0], s.number(args[1]))
	case "license":
		(&licenses{s.projects}).set(args[0], int64(s.number(args[1])))
	case "workflow":
		return s.workflow(args)
	case "stage":
		return s.begins(args[0], args[1])
	case "job":
		return s.job(args[0], s.number(args[1]), s.options(args[2:]))
	case "again":
		return s.decided(args[0])
	case "ends":
		s.ends(args[0], s.number(args[1]))
	case "after":
		s.after(s.duration(args[0]))
	case "running":
		return s.lists()
	case "reservation":
		return s.uses()
	default:
		s.t.Fatalf("there is no command %q", command)
	}
	return nil
}

func (s *scenario) addNode(name string, o map[string]string) {
	rack := func(n *structs.Node) {
		if o["rack"] != "" {
			n.Meta["rack"] = o["rack"]
		}
	}
	if o["gpus"] != "" {
		s.node(name, schedtest.EightGPUs, rack)
		return
	}
	cores := s.number(o["cores"])
	memory := 1000 * cores
	if o["memory"] != "" {
		memory = s.number(o["memory"])
	}
	s.node(name, sized(int64(1000*cores), int64(memory)), rack, func(n *structs.Node) { n.NodeResources.Cpu.TotalCpuCores = uint16(cores) })
}

// bandsAre turns preemption on.
func (s *scenario) bandsAre(command string, args []string) {
	s.config.PreemptionConfig.BatchSchedulerEnabled = true
	s.config.KeepWhole = s.config.KeepWhole || command == "keep-whole"
	for _, band := range args {
		low, high, _ := strings.Cut(band, "-")
		s.config.Bands = append(s.config.Bands, structs.PriorityBand{Low: s.number(low), High: s.number(high)})
	}
	s.configure()
}

// job submits a job.
func (s *scenario) job(name string, count int, o map[string]string) []string {
	get := func(key string, otherwise int) int {
		if o[key] == "" {
			return otherwise
		}
		return s.number(o[key])
	}
	cores := get("cores", 1)
	j := schedtest.Job(structs.JobTypeBatch, count, requests(get("priority", 50), 1000*cores, get("memory", 1000*cores)), func(j *structs.Job) {
		j.ID = name
		if o["namespace"] != "" {
			j.Namespace = o["namespace"]
		}
		if p := o["project"]; p != "" {
			j.Project, j.Submitter = p, &structs.Submitter{User: p}
		}
		j.Reclaim = o["reclaim"]
		g, task := schedtest.Group(j), schedtest.Task(j)
		if o["gpus"] != "" {
			task.Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: get("gpus", 0)}}
		}
		if o["gang"] != "" {
			g.Gang = &structs.Gang{Min: get("gang", 0)}
		}
		if o["level"] != "" {
			g.Topology = &structs.TopologyConstraint{Level: o["level"], Required: true}
		}
		if name, n, found := strings.Cut(o["license"], ":"); found {
			task.Resources.Licenses = map[string]int{name: s.number(n)}
		}
		if o["limit"] != "" {
			g.MaxRunDuration = s.duration(o["limit"])
		}
	})
	return s.submitted(j)
}

func (s *scenario) submitted(j *structs.Job) []string {
	j.Canonicalize()
	s.jobs[j.ID], s.since[j.ID] = j, s.now
	return s.decided(j.ID)
}

// decided decides on a job, and says what the plan does.
func (s *scenario) decided(name string) []string {
	s.gpuWorkflows.job = s.jobs[name]
	ev := s.newEval()
	ev.JobID, ev.Namespace, ev.Type, ev.CreateTime = name, s.gpuWorkflows.job.Namespace, structs.JobTypeBatch, s.since[name].UnixNano()
	plan := s.evaluate(ev)
	lines := append(counted(s.placedBy(plan)), counted(s.changedBy(plan))...)
	for _, group := range slices.Sorted(maps.Keys(plan.FailedTGAllocs)) {
		why := plan.FailedTGAllocs[group]
		lines = append(lines, fmt.Sprintf("%d waits: %s", why.CoalescedFailures+1, strings.Join(slices.Sorted(maps.Keys(why.DimensionExhausted)), "; ")))
	}
	s.runAll()
	return lines
}

// placedBy says of each instance that a plan places where it runs, and by what claim.
func (s *scenario) placedBy(plan *structs.Plan) (list []string) {
	for _, b := range plan.Place {
		for i := range b.Instances {
			list = append(list, "starts "+s.described(b.Allocation(i)))
		}
	}
	return list
}

// changedBy says of each instance that a plan stops, suspends, resumes or gives another claim what becomes of it.
func (s *scenario) changedBy(plan *structs.Plan) (list []string) {
	for _, stop := range plan.Stop {
		text := "stops "
		if stop.DesiredStatus == structs.AllocDesiredSuspend {
			text = "suspends "
		}
		text += s.allocs[stop.AllocID].JobID + " on " + s.allocs[stop.AllocID].NodeID
		if stop.RequeueReason != "" {
			text += ": " + stop.RequeueReason
		}
		list = append(list, text)
	}
	for _, u := range plan.Update {
		switch a := s.allocs[u.AllocID]; {
		case u.Resume:
			list = append(list, "resumes "+a.JobID+" on "+a.NodeID)
		default:
			list = append(list, "updates "+s.described(a))
		}
	}
	return list
}

// described says what an allocation is, where it runs, and by what claim.
func (s *scenario) described(a *structs.Allocation) string {
	text := a.JobID + " on " + a.NodeID
	for _, task := range a.AllocatedResources.Tasks {
		for _, d := range task.Devices {
			var numbers []string
			for _, id := range d.DeviceIDs {
				numbers = append(numbers, strings.TrimPrefix(id, a.NodeID+"-gpu-"))
			}
			slices.Sort(numbers)
			text += ", GPUs " + strings.Join(numbers, " ")
		}
	}
	terms := a.AllocatedResources.Shared.Terms
	switch {
	case terms.Claim == structs.ClaimSlots:
		text += fmt.Sprintf(", on slots: %d, guards: %d", terms.Slots.Cost, terms.Slots.Guards)
	case terms.Claim == structs.ClaimWorkflow:
		text += ", by the reservation"
	case terms.Claim != "":
		text += ", guaranteed by a cell of level " + terms.CellLevel
	}
	if a.Suspended() {
		text += ", suspended"
	}
	return text
}

// counted writes equal lines once, with how many there are, in order.
func counted(list []string) (out []string) {
	slices.Sort(list)
	for i := 0; i < len(list); {
		n := 1
		for i+n < len(list) && list[i+n] == list[i] {
			n++
		}
		line := list[i]
		if n > 1 {
			line += fmt.Sprintf(" × %d", n)
		}
		out, i = append(out, line), i+n
	}
	return out
}

// lists says what runs.
func (s *scenario) lists() []string {
	var list []string
	for _, a := range s.allocs {
		if !a.Terminal() {
			list = append(list, s.described(a))
		}
	}
	return counted(list)
}

// workflow reserves for the workflow.
func (s *scenario) workflow(args []string) []string {
	var stages []scheduler.WorkflowStage
	for _, text := range strings.Split(args[1], "/") {
		var cores []int
		for _, n := range strings.Split(text, ",") {
			cores = append(cores, s.number(n))
		}
		stages = append(stages, stagesOf(cores)...)
	}
	s.claim = &structs.WorkflowClaim{Namespace: "default", ID: "wf", Run: 1, NodePool: "default", Priority: 50}
	if lend := s.options(args[2:])["lend"]; lend != "" {
		for _, to := range strings.Split(lend, ",") {
			l := &structs.WorkflowLend{To: to}
			if i := strings.LastIndex(to, ":"); strings.Count(to, ":") == 2 {
				l.To, l.Share = to[:i], s.number(to[i+1:])
			}
			s.claim.Lend = append(s.claim.Lend, l)
		}
	}
	e := s.w.Edit()
	scheduler.SetWorkflow(e, s.claim)
	s.w = e.World()
	key := s.claim.Key()
	s.workflows.workflows[key] = s.claim
	c := scheduler.ChooseReservation(s.w, key, "default", stages, structs.WorkflowReserve{Rule: args[0]}, false)
	if !c.Posted {
		return []string{"waits: " + c.Missing}
	}
	if why := s.post(s.claim, c); why != "" {
		return []string{"does not hold: " + why}
	}
	var lines []string
	for _, p := range c.Parts {
		lines = append(lines, fmt.Sprintf("reserves %d cores on %s", p.CPU/1000, p.NodeID))
	}
	return lines
}

// begins has the jobs of a stage come, the largest first as they start.
func (s *scenario) begins(name, sizes string) (lines []string) {
	for i, cores := range strings.Split(sizes, ",") {
		n := 1000 * s.number(cores)
		lines = append(lines, s.submitted(schedtest.Job(structs.JobTypeBatch, 1, requests(50, n, n), func(j *structs.Job) {
			j.ID = fmt.Sprintf("wf/1/%s%d", name, i+1)
			j.Workflow = &structs.JobWorkflow{ID: "wf", Run: 1, Stage: name}
		}))...)
	}
	return lines
}

// uses says how the reservation is used on each node.
func (s *scenario) uses() (lines []string) {
	for _, n := range s.sortedNodes() {
		state, _ := s.w.State(n.ID)
		if p, found := state.Part("default/wf"); found {
			lines = append(lines, fmt.Sprintf("%s: used %d, lent %d, idle %d", n.ID, p.Used.Amount.CPU/1000, p.Lent.Amount.CPU/1000, p.Idle.Amount.CPU/1000))
		}
	}
	return lines
}
