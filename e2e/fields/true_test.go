package fields

import (
	"fmt"
	"net"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"

	nomad "github.com/hashicorp/nomad/api"
)

// agree compares the fields that two answers about one thing share by name.
func (w *world) agree(what string, a, b any, but ...string) {
	w.t.Helper()
	va, vb := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for _, f := range reflect.VisibleFields(va.Type()) {
		other := vb.FieldByName(f.Name)
		if other.IsValid() && !slices.Contains(but, f.Name) && other.Type() == f.Type && !reflect.DeepEqual(va.FieldByIndex(f.Index).Interface(), other.Interface()) {
			w.t.Errorf("%s: %s is %v in the list and %v alone", what, f.Name, show(va.FieldByIndex(f.Index)), show(other))
		}
	}
}

// checkAlloc: an allocation has what its job asks, and its list entry agrees.
func (w *world) checkAlloc(stub *nomad.AllocationListStub, alloc *nomad.Allocation) {
	w.t.Helper()
	what := "allocation " + alloc.Name
	if stub.ModifyIndex == alloc.ModifyIndex {
		w.agree(what, stub, alloc)
	}
	if stub.JobType != *alloc.Job.Type || stub.JobVersion != *alloc.Job.Version {
		w.t.Errorf("%s: its job is a %s at version %d, its list says %s at %d", what, *alloc.Job.Type, *alloc.Job.Version, stub.JobType, stub.JobVersion)
	}
	requested := *w.requested[alloc.JobID]
	if *alloc.Job.Version == 0 { // later ones are scaled or stopped
		for _, wrong := range same(&requested, alloc.Job) {
			w.t.Errorf("%s: %s", what, wrong)
		}
	}
	if node := w.node(alloc.NodeID); node.Name != alloc.NodeName {
		w.t.Errorf("%s: its node is called %s, not %s", what, node.Name, alloc.NodeName)
	}
	if !strings.HasPrefix(alloc.Name, alloc.JobID+"."+alloc.TaskGroup+"[") {
		w.t.Errorf("%s: its job is %s, its group %s", what, alloc.JobID, alloc.TaskGroup)
	}
	if order := []uint64{1, alloc.CreateIndex, alloc.AllocModifyIndex, alloc.ModifyIndex}; !slices.IsSorted(order) || alloc.CreateTime > alloc.ModifyTime {
		w.t.Errorf("%s: indexes %d, %d, %d; times %d, %d", what, alloc.CreateIndex, alloc.AllocModifyIndex, alloc.ModifyIndex, alloc.CreateTime, alloc.ModifyTime)
	}
	eval, _, err := w.c.Evaluations().Info(alloc.EvalID, nil)
	w.must(err)
	if eval.JobID != alloc.JobID {
		w.t.Errorf("%s: its evaluation is of %s", what, eval.JobID)
	}
	w.checkGiven(what, requested.TaskGroups[0], alloc.AllocatedResources)
	w.checkTasks(what, alloc)
	if t := alloc.RescheduleTracker; t != nil && len(t.Events) > 0 && alloc.PreviousAllocation != "" {
		last := t.Events[len(t.Events)-1]
		if prev := w.alloc(last.PrevAllocID); last.PrevAllocID != alloc.PreviousAllocation || prev.NodeID != last.PrevNodeID || prev.NextAllocation != alloc.ID {
			w.t.Errorf("%s: comes after %s; its tracker says %+v", what, alloc.PreviousAllocation, last)
		}
	}
}

// checkGiven: what was given is what was asked.
func (w *world) checkGiven(what string, requested *nomad.TaskGroup, given *nomad.AllocatedResources) {
	w.t.Helper()
	for _, task := range requested.Tasks {
		got, r := given.Tasks[task.Name], task.Resources
		if got == nil || got.Memory.MemoryMB != int64(*r.MemoryMB) || r.MemoryMaxMB != nil && got.Memory.MemoryMaxMB != int64(*r.MemoryMaxMB) ||
			r.CPU != nil && got.Cpu.CpuShares != int64(*r.CPU) || got.Cpu.CpuShares == 0 {
			w.t.Errorf("%s: task %s was given %+v", what, task.Name, got)
			continue
		}
		for i, d := range r.Devices {
			if g := got.Devices[i]; g.Vendor+"/"+g.Type != d.Name || len(g.DeviceIDs) != int(*d.Count) { // one
				w.t.Errorf("%s: task %s asked for %d %s and was given %+v", what, task.Name, *d.Count, d.Name, g)
			}
		}
	}
	if given.Shared.DiskMB != int64(*requested.EphemeralDisk.SizeMB) {
		w.t.Errorf("%s: was given %d MB of disk", what, given.Shared.DiskMB)
	}
	for _, n := range requested.Networks {
		for _, p := range slices.Concat(n.ReservedPorts, n.DynamicPorts) {
			i := slices.IndexFunc(given.Shared.Ports, func(m nomad.PortMapping) bool { return m.Label == p.Label })
			if i < 0 {
				w.t.Errorf("%s: has no port %s", what, p.Label)
			} else if m := given.Shared.Ports[i]; m.Value == 0 || p.Value != 0 && m.Value != p.Value || m.To != p.To || net.ParseIP(m.HostIP) == nil {
				w.t.Errorf("%s: for port %+v it was given %+v", what, p, m)
			}
		}
	}
}

// checkTasks: states fit the events, which are in order.
func (w *world) checkTasks(what string, alloc *nomad.Allocation) {
	w.t.Helper()
	for name, s := range alloc.TaskStates {
		started, finished := !s.StartedAt.IsZero(), !s.FinishedAt.IsZero()
		if finished && (s.State != "dead" || s.FinishedAt.Before(s.StartedAt)) || started && !finished && s.State == "dead" {
			w.t.Errorf("%s: task %s is %s, started %s, finished %s", what, name, s.State, s.StartedAt, s.FinishedAt)
		}
		if !slices.IsSortedFunc(s.Events, func(a, b *nomad.TaskEvent) int { return int(a.Time - b.Time) }) {
			w.t.Errorf("%s: the events of task %s are not in order", what, name)
		}
		for _, e := range s.Events {
			if e.Type == "" || e.DisplayMessage == "" {
				w.t.Errorf("%s: task %s has an event %+v", what, name, e)
			}
			if code := e.Details["exit_code"]; e.Type == "Terminated" && code != strconv.Itoa(e.ExitCode) {
				w.t.Errorf("%s: task %s ended with %d, in detail %q", what, name, e.ExitCode, code)
			}
		}
		if alloc.JobID == "flaky" && (!s.Failed || s.Restarts != 1) {
			w.t.Errorf("%s: failed %v after %d restarts", what, s.Failed, s.Restarts)
		}
	}
}

// checkEval: an evaluation is of its job, and those it names know it.
func (w *world) checkEval(e *nomad.Evaluation) {
	w.t.Helper()
	what := fmt.Sprintf("evaluation %s (%s of %s)", e.ID, e.TriggeredBy, e.JobID)
	requested := w.requested[e.JobID]
	if requested == nil || e.Type != *requested.Type || e.Namespace != "default" || e.CreateIndex == 0 || e.ModifyIndex < e.CreateIndex || e.ModifyTime < e.CreateTime {
		w.t.Errorf("%s: %+v", what, e)
	}
	if e.BlockedEval != "" {
		blocked, _, err := w.c.Evaluations().Info(e.BlockedEval, nil)
		w.must(err)
		if blocked.PreviousEval != e.ID || blocked.JobID != e.JobID {
			w.t.Errorf("%s: left %s behind, which comes after %q", what, blocked.ID, blocked.PreviousEval)
		}
	}
	for group, m := range e.FailedTGAllocs {
		if m.NodesEvaluated < m.NodesFiltered || m.NodesEvaluated > m.NodesInPool || m.NodesExhausted == 0 && m.NodesFiltered == 0 {
			w.t.Errorf("%s: group %s: %+v", what, group, m)
		}
	}
}

// checkNode: a node is what its configuration says, and its list entry agrees.
func (w *world) checkNode(stub *nomad.NodeListStub, n *nomad.Node) {
	w.t.Helper()
	what := "node " + n.Name
	if stub.ModifyIndex == n.ModifyIndex {
		w.agree(what, stub, n, "Attributes") // a list has but some
	}
	if host, _, _ := net.SplitHostPort(n.HTTPAddr); host != stub.Address || !strings.HasSuffix(w.a.HTTP, n.HTTPAddr) {
		w.t.Errorf("%s: is at %s, its list says %s", what, n.HTTPAddr, stub.Address)
	}
	if n.Drain != (n.DrainStrategy != nil) || n.Drain && n.SchedulingEligibility != "ineligible" || n.Status != "ready" {
		w.t.Errorf("%s: is %s, %s, drain %v, %+v", what, n.Status, n.SchedulingEligibility, n.Drain, n.DrainStrategy)
	}
	switch n.NodeClass {
	case "real":
		r := n.ReservedResources
		if int(n.NodeResources.Cpu.TotalCpuCores) != runtime.NumCPU() || n.Meta["owner"] != "e2e" || r.Cpu.CpuShares != 50 || r.Memory.MemoryMB != 64 ||
			r.Disk.DiskMB != 128 || r.Networks.ReservedHostPorts != "22" || !n.HostVolumes["shared"].ReadOnly {
			w.t.Errorf("%s: %+v, reserved %+v", what, n.NodeResources, r)
		}
	case "gpu":
		if d := n.NodeResources.Devices; len(d) != 1 || len(d[0].Instances) != 2 || *d[0].Attributes["memory"].IntVal != 81920 {
			w.t.Errorf("%s: devices %+v", what, d)
		}
	case "plain":
		if c := n.NodeResources.Cpu; c.TotalCpuCores != 4 || len(c.ReservableCpuCores) != 4 || n.NodeResources.Memory.MemoryMB != 4096 || n.Meta["rack"] != "r1" {
			w.t.Errorf("%s: %+v", what, n.NodeResources)
		}
	}
}

// checkSummary: the numbers are those of the allocations.
func (w *world) checkSummary(s *nomad.JobSummary) {
	w.t.Helper()
	allocs, qm, err := w.c.Jobs().Allocations(s.JobID, true, nil)
	w.must(err)
	again, _, err := w.c.Jobs().Summary(s.JobID, nil)
	w.must(err)
	if s.ModifyIndex != again.ModifyIndex || qm.LastIndex > s.ModifyIndex && !reflect.DeepEqual(s, again) {
		return // it moved meanwhile
	}
	count := func(status string) (n int) {
		for _, a := range allocs {
			if a.ClientStatus == status {
				n++
			}
		}
		return n
	}
	g := s.Summary["g"]
	if g.Running != count("running") || g.Complete != count("complete") || g.Failed != count("failed") || g.Starting != count("pending") || g.Lost != count("lost") {
		w.t.Errorf("summary of %s: %+v", s.JobID, g)
	}
}

// checkUsage: the busy task uses a processor and memory, and its sum is its tasks'.
func (w *world) checkUsage(u *nomad.AllocResourceUsage) {
	w.t.Helper()
	task := u.Tasks["t"]
	if task == nil || len(u.Tasks) != 1 {
		w.t.Fatalf("it tells of the tasks %v", u.Tasks)
	}
	if c := task.ResourceUsage.CpuStats; c.Percent <= 1 || c.TotalTicks <= 0 || !reflect.DeepEqual(c, u.ResourceUsage.CpuStats) {
		w.t.Errorf("a busy task uses %+v, its allocation %+v", c, u.ResourceUsage.CpuStats)
	}
	if m := task.ResourceUsage.MemoryStats; m.RSS < 4096 || m.Usage < m.RSS || m.RSS > 1<<30 {
		w.t.Errorf("it uses %+v", m)
	}
	measured := slices.Concat(task.ResourceUsage.MemoryStats.Measured, task.ResourceUsage.CpuStats.Measured)
	for _, name := range []string{"RSS", "User Mode", "System Mode", "Percent"} {
		if !slices.Contains(measured, name) {
			w.t.Errorf("%s is not among what is measured, %v", name, measured)
		}
	}
	for pid := range task.Pids {
		if _, err := strconv.Atoi(pid); err != nil {
			w.t.Errorf("process %q: %v", pid, err)
		}
	}
}

// checkHost: this machine.
func (w *world) checkHost(s *nomad.HostStats) {
	w.t.Helper()
	if total := w.node(w.nodes["real"].ID).Attributes["memory.totalbytes"]; strconv.FormatUint(s.Memory.Total, 10) != total {
		w.t.Errorf("memory of %d bytes, its attribute says %s", s.Memory.Total, total)
	}
	if len(s.CPU) != runtime.NumCPU() {
		w.t.Errorf("%d processors", len(s.CPU))
	}
	if d := s.AllocDirStats; d.Used+d.Available > d.Size || d.UsedPercent > 100 {
		w.t.Errorf("disk %+v", d)
	}
}

func (w *world) checkMember(m *nomad.AgentMember) {
	w.t.Helper()
	if at := net.JoinHostPort(m.Addr, strconv.Itoa(int(m.Port))); at != w.a.Serf || net.JoinHostPort(m.Tags["rpc_addr"], m.Tags["port"]) != w.a.RPC || m.Name != "e2e.global" || m.Status != "alive" || m.Tags["region"] != "global" {
		w.t.Errorf("member %+v", m)
	}
}

// checkEvents: an event is of what its topic and key say.
func (w *world) checkEvents(batch *nomad.Events) {
	w.t.Helper()
	for _, e := range batch.Events {
		id, index, err := subject(&e)
		if err != nil {
			w.t.Errorf("event %s %s of %q: %v", e.Topic, e.Type, e.Key, err)
		} else if id != "" && (id != e.Key || e.Index != batch.Index || index != e.Index) {
			w.t.Errorf("event %s %s of %q at %d holds %q of %d", e.Topic, e.Type, e.Key, e.Index, id, index)
		}
	}
}

// subject is what an event is about, as the official client decodes it; empty where
// a topic has none.
func subject(e *nomad.Event) (id string, index uint64, err error) {
	//exhaustive:ignore the others come later
	switch e.Topic {
	case nomad.TopicJob:
		job, err := e.Job()
		if err != nil || job == nil {
			return "", 0, fmt.Errorf("no job: %w", err)
		}
		return *job.ID, *job.ModifyIndex, nil
	case nomad.TopicAllocation:
		alloc, err := e.Allocation()
		if err != nil || alloc == nil {
			return "", 0, fmt.Errorf("no allocation: %w", err)
		}
		return alloc.ID, alloc.ModifyIndex, nil
	case nomad.TopicEvaluation:
		eval, err := e.Evaluation()
		if err != nil || eval == nil {
			return "", 0, fmt.Errorf("no evaluation: %w", err)
		}
		return eval.ID, eval.ModifyIndex, nil
	case nomad.TopicNode:
		node, err := e.Node()
		if err != nil || node == nil {
			return "", 0, fmt.Errorf("no node: %w", err)
		}
		return node.ID, node.ModifyIndex, nil
	}
	return "", 0, nil
}

// checkJob: a job's line in the list is the job's.
func (w *world) checkJob(stub *nomad.JobListStub) {
	w.t.Helper()
	job, _, err := w.c.Jobs().Info(stub.ID, nil)
	w.must(err)
	if stub.Name != *job.Name || stub.Namespace != *job.Namespace || stub.Type != *job.Type || stub.Priority != *job.Priority ||
		stub.Stop != *job.Stop || stub.SubmitTime != *job.SubmitTime || stub.CreateIndex != *job.CreateIndex || stub.JobModifyIndex != *job.JobModifyIndex ||
		!reflect.DeepEqual(stub.Datacenters, job.Datacenters) || !reflect.DeepEqual(stub.Meta, job.Meta) ||
		stub.Periodic != job.IsPeriodic() || stub.ParameterizedJob != job.IsParameterized() || stub.JobSummary.JobID != stub.ID {
		w.t.Errorf("job %s is listed as %+v", *job.ID, stub)
	}
	want := "running"
	if stub.Stop || slices.Contains([]string{"flaky", "team"}, stub.ID) {
		want = "dead"
	}
	if stub.ID == "huge" {
		want = "pending"
	}
	if stub.ModifyIndex == *job.ModifyIndex && (stub.Status != *job.Status || stub.ID != "broken" && stub.Status != want) {
		w.t.Errorf("job %s is %s, listed as %s, not %s", stub.ID, *job.Status, stub.Status, want)
	}
}

// checkFiles: what lies in an allocation's directory.
func (w *world) checkFiles(seen *coverage, alloc *nomad.Allocation) {
	w.t.Helper()
	f := func(dir, name string, isDir bool, size int64, kind string) {
		w.t.Helper()
		files, _, err := w.c.AllocFS().List(alloc, dir, nil)
		w.must(err)
		i := slices.IndexFunc(files, func(f *nomad.AllocFileInfo) bool { return f.Name == name })
		if i < 0 {
			w.t.Errorf("%s has no %s", dir, name)
			return
		}
		info, _, err := w.c.AllocFS().Stat(alloc, dir+"/"+name, nil)
		w.must(err)
		for _, got := range []*nomad.AllocFileInfo{files[i], info} {
			seen.see("AllocFileInfo", got)
			if got.Name != name || got.IsDir != isDir || !isDir && got.Size != size || strings.HasPrefix(got.FileMode, "d") != isDir || !strings.HasPrefix(info.ContentType, kind) {
				w.t.Errorf("%s/%s is %+v", dir, name, got)
			}
		}
	}
	f("/", "alloc", true, 0, "")
	f("/alloc", "logs", true, 0, "")
	f("/alloc/logs", "t.stdout.0", false, int64(len("started\n")), "text/plain")
}

// checkRegistered: the indexes and the evaluation are those of the job.
func (w *world) checkRegistered(id string, reg *nomad.JobRegisterResponse) {
	w.t.Helper()
	job, _, err := w.c.Jobs().Info(id, nil)
	w.must(err)
	eval, _, err := w.c.Evaluations().Info(reg.EvalID, nil)
	w.must(err)
	if reg.JobModifyIndex != *job.JobModifyIndex || reg.EvalCreateIndex != eval.CreateIndex || eval.JobID != id || eval.JobModifyIndex != reg.JobModifyIndex {
		w.t.Errorf("registering %s was answered with %+v; its evaluation is %+v", id, reg, eval)
	}
}
