package taskenv

import (
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// The variables that select the GPUs that a program may see: the first to NVIDIA's
// container runtime, the second to CUDA in any process.
const (
	visibleToContainers = "NVIDIA_VISIBLE_DEVICES"
	visibleToCUDA       = "CUDA_VISIBLE_DEVICES"
)

// gpus names the GPUs and MIG slices that the task was given, in order. A task that
// was given none sees none on a node that has some: without the variables a program
// would take what is somebody else's. A task's own env block has the last word, so
// that what only watches GPUs can be run without reserving them.
func (e *Env) gpus(in Input) {
	var ids []string
	share := 0
	if r := in.Alloc.AllocatedResources; r != nil && r.Tasks[in.Task.Name] != nil {
		for _, d := range r.Tasks[in.Task.Name].Devices {
			if isGPU(d.Vendor, d.Type) {
				ids = append(ids, d.DeviceIDs...)
				share = max(share, d.Share)
			}
		}
	}
	switch {
	case len(ids) > 0:
		e.vars[visibleToContainers] = strings.Join(ids, ",")
		e.vars[visibleToCUDA] = strings.Join(ids, ",")
	case hasGPUs(in.Node):
		e.vars[visibleToContainers] = "void"
		e.vars[visibleToCUDA] = ""
	}
	if share > 0 && share < structs.DeviceShareWhole {
		e.set("NOMADISH_GPU_SHARE", strconv.Itoa(share))
	}
}

func isGPU(vendor, kind string) bool {
	return strings.EqualFold(vendor, "nvidia") && (strings.EqualFold(kind, "gpu") || strings.EqualFold(kind, "mig"))
}

func hasGPUs(n *structs.Node) bool {
	if n == nil || n.NodeResources == nil {
		return false
	}
	for _, d := range n.NodeResources.Devices {
		if isGPU(d.Vendor, d.Type) {
			return true
		}
	}
	return false
}

// gang sets the variables by which a member of a gang finds its peers (semantics part 2).
func (e *Env) gang(g *structs.AllocGang) {
	if g == nil {
		return
	}
	e.set("NOMADISH_GANG_RANK", strconv.Itoa(g.Rank))
	e.set("NOMADISH_GANG_SIZE", strconv.Itoa(g.Size))
	e.set("NOMADISH_GANG_HOSTS", strings.Join(g.Hosts, ","))
}
