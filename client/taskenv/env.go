package taskenv

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// Input is all that a task's environment depends on.
type Input struct {
	Alloc  *structs.Allocation // with its Job
	Task   *structs.Task
	Node   *structs.Node
	Region string
	// AllocDir, TaskDir and SecretsDir are what the task sees as its allocation's
	// shared directory, its local directory and its secrets directory.
	AllocDir   string
	TaskDir    string
	SecretsDir string
	// Base is laid beneath everything else: PATH, HOME and the like.
	Base map[string]string
	// ParentCgroup is the cgroup that tasks live under; empty: none.
	ParentCgroup string
}

// Env is a task's environment and what references are resolved with.
type Env struct {
	vars   map[string]string // the environment
	node   *structs.Node     // what "node.…", "attr.…" and "meta.…" stand for; may be nil
	region string
}

// Build makes a task's environment. Values of meta and env blocks are filled in.
func Build(in Input) *Env {
	e := &Env{vars: map[string]string{}, node: in.Node, region: in.Region}
	e.identity(in)
	e.resources(in)
	e.gpus(in)
	e.gang(in.Alloc.Gang)
	e.set("NOMADISH_REQUEUED", strconv.Itoa(in.Alloc.Requeues))
	e.set("NOMADISH_REQUEUE_REASON", in.Alloc.RequeueReason)
	if a := in.Alloc; a.Job != nil && a.Job.Workflow != nil {
		w := a.Job.Workflow
		e.set("NOMADISH_WORKFLOW", w.ID)
		e.set("NOMADISH_WORKFLOW_RUN", strconv.Itoa(w.Run))
		e.set("NOMADISH_WORKFLOW_STAGE", w.Stage)
		e.set("NOMADISH_WORKFLOW_ATTEMPT", strconv.Itoa(w.Attempt))
	}
	e.ports(in)
	meta := Meta(in.Alloc, in.Task)
	for _, k := range slices.Sorted(maps.Keys(meta)) {
		v := e.Replace(meta[k])
		e.vars["NOMAD_META_"+cleanName(k)] = v
		e.vars["NOMAD_META_"+strings.ToUpper(cleanName(k))] = v
	}
	out := maps.Clone(in.Base)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, e.vars)
	e.vars = out
	own := make(map[string]string, len(in.Task.Env))
	for k, v := range in.Task.Env {
		own[e.Replace(k)] = e.Replace(v)
	}
	maps.Copy(e.vars, own)
	return e
}

// Meta is the task's meta: the job's, overlaid with the group's, then its own.
func Meta(a *structs.Allocation, task *structs.Task) map[string]string {
	out := map[string]string{}
	if a.Job != nil {
		maps.Copy(out, a.Job.Meta)
		for _, g := range a.Job.TaskGroups {
			if g.Name == a.TaskGroup {
				maps.Copy(out, g.Meta)
			}
		}
	}
	maps.Copy(out, task.Meta)
	return out
}

// Vars is the environment. The caller may change it.
func (e *Env) Vars() map[string]string { return maps.Clone(e.vars) }

func (e *Env) set(name, value string) {
	if value != "" {
		e.vars[name] = value
	}
}

func (e *Env) identity(in Input) {
	a := in.Alloc
	e.set("NOMAD_ALLOC_DIR", in.AllocDir)
	e.set("NOMAD_TASK_DIR", in.TaskDir)
	e.set("NOMAD_SECRETS_DIR", in.SecretsDir)
	e.set("NOMAD_ALLOC_ID", a.ID)
	e.set("NOMAD_SHORT_ALLOC_ID", structs.ShortID(a.ID))
	e.set("NOMAD_ALLOC_NAME", a.Name)
	if i := a.Index(); i >= 0 {
		e.set("NOMAD_ALLOC_INDEX", strconv.Itoa(i))
	}
	e.set("NOMAD_GROUP_NAME", a.TaskGroup)
	e.set("NOMAD_TASK_NAME", in.Task.Name)
	e.set("NOMAD_JOB_ID", a.JobID)
	e.set("NOMAD_NAMESPACE", a.Namespace)
	e.set("NOMAD_REGION", in.Region)
	e.set("NOMAD_PARENT_CGROUP", in.ParentCgroup)
	if a.Job != nil {
		e.set("NOMAD_JOB_NAME", a.Job.Name)
		e.set("NOMAD_JOB_PARENT_ID", a.Job.ParentID)
	}
	if in.Node != nil {
		e.set("NOMAD_DC", in.Node.Datacenter)
	}
}

func (e *Env) resources(in Input) {
	if in.Alloc.AllocatedResources == nil {
		return
	}
	res := in.Alloc.AllocatedResources.Tasks[in.Task.Name]
	if res == nil {
		return
	}
	if res.Cpu.CpuShares > 0 {
		e.set("NOMAD_CPU_LIMIT", strconv.FormatInt(res.Cpu.CpuShares, 10))
	}
	if len(res.Cpu.ReservedCores) > 0 {
		e.set("NOMAD_CPU_CORES", coreList(res.Cpu.ReservedCores))
	}
	if res.Memory.MemoryMB > 0 {
		e.set("NOMAD_MEMORY_LIMIT", strconv.FormatInt(res.Memory.MemoryMB, 10))
	}
	if res.Memory.MemoryMaxMB > 0 {
		e.set("NOMAD_MEMORY_MAX_LIMIT", strconv.FormatInt(res.Memory.MemoryMaxMB, 10))
	}
}

// coreList writes cores as ranges: "0-3,6".
func coreList(cores []uint16) string {
	sorted := slices.Sorted(slices.Values(cores))
	var b strings.Builder
	for i := 0; i < len(sorted); {
		j := i
		for j+1 < len(sorted) && sorted[j+1] == sorted[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		if i == j {
			fmt.Fprintf(&b, "%d", sorted[i])
		} else {
			fmt.Fprintf(&b, "%d-%d", sorted[i], sorted[j])
		}
		i = j + 1
	}
	return b.String()
}

// ports sets the variables of the group's ports, and of those that tasks request
// for in the older way.
func (e *Env) ports(in Input) {
	r := in.Alloc.AllocatedResources
	if r == nil {
		return
	}
	for _, p := range r.Shared.Ports {
		e.port(p.Label, p.HostIP, p.Value, p.To)
	}
	if len(r.Shared.Ports) == 0 {
		for _, n := range r.Shared.Networks {
			e.network("", n)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Tasks)) {
		for _, n := range r.Tasks[name].Networks {
			if name == in.Task.Name {
				e.network("", n)
			}
			e.network(name+"_", n)
		}
	}
}

func (e *Env) network(prefix string, n *structs.NetworkResource) {
	for _, ports := range [][]structs.Port{n.ReservedPorts, n.DynamicPorts} {
		for _, p := range ports {
			e.port(prefix+p.Label, n.IP, p.Value, p.To)
		}
	}
}

func (e *Env) port(label, ip string, host, to int) {
	label = cleanName(label)
	inside := host
	if to > 0 {
		inside = to
	}
	h, i := strconv.Itoa(host), strconv.Itoa(inside)
	e.set("NOMAD_IP_"+label, ip)
	e.set("NOMAD_PORT_"+label, i)
	e.set("NOMAD_ADDR_"+label, net.JoinHostPort(ip, h))
	e.set("NOMAD_HOST_IP_"+label, ip)
	e.set("NOMAD_HOST_PORT_"+label, h)
	e.set("NOMAD_HOST_ADDR_"+label, net.JoinHostPort(ip, h))
	e.set("NOMAD_ALLOC_IP_"+label, ip)
	e.set("NOMAD_ALLOC_PORT_"+label, i)
	e.set("NOMAD_ALLOC_ADDR_"+label, net.JoinHostPort(ip, i))
}

// cleanName makes a label or key fit to be part of a variable's name.
func cleanName(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, s)
}
