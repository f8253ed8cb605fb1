package command

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// An allocation's status names its devices with share and level, and its place in a gang.
func TestAllocStatusShowsDevicesAndGang(t *testing.T) {
	a := webAlloc(allocA, structs.AllocClientPending)
	a.Gang = &structs.AllocGang{Rank: 1, Size: 4, Hosts: []string{"10.0.0.1:80", "10.0.0.2:80"}, Level: "rack"}
	given := a.AllocatedResources.Tasks["serve"]
	given.Devices[0].DeviceIDs, given.Devices[0].Level = []string{"gpu-1-gpu-0", "gpu-1-gpu-1"}, "pcie"
	given.Devices = append(given.Devices, &structs.AllocatedDeviceResource{
		Vendor: "nvidia", Type: "gpu", Name: "A10", DeviceIDs: []string{"gpu-1-gpu-9"}, Share: 250, Level: "gpu",
	})
	f := newFake(t).on("GET /v1/allocations", []*structs.AllocListStub{a.Stub(false, true)}).on("GET /v1/allocation/"+allocA, a)
	got := f.run(t, "alloc", "status", allocA)
	wants(t, got.out, "= rank 1 of 4, all under one rack\n", "Name             Share     Level  IDs\n",
		"nvidia/gpu/H100  whole     pcie   gpu-1-gpu-0,gpu-1-gpu-1\n", "nvidia/gpu/A10   250/1000  gpu    gpu-1-gpu-9\n")
	if strings.Contains(got.out, "10.0.0.2") {
		t.Errorf("the hosts without -verbose:\n%s", got.out)
	}
	wants(t, f.run(t, "alloc", "status", "-verbose", allocA).out, "10.0.0.1:80,10.0.0.2:80\n")
	a.Gang.Level = ""
	wants(t, f.run(t, "alloc", "status", allocA).out, "= rank 1 of 4\n")
	terms := structs.AllocTerms{Claim: structs.ClaimSlots, Slots: &structs.SlotTerms{Project: "chip", Type: "batch", Cost: 1}}
	a.AllocatedResources.Shared.Terms = &terms
	wants(t, f.run(t, "alloc", "status", allocA).out, "= guaranteed (slot of type batch of project chip)\n")
	terms.Claim, terms.Workflow = structs.ClaimWorkflow, &structs.WorkflowTerms{Key: "default/chip"}
	wants(t, f.run(t, "alloc", "status", allocA).out, "= guaranteed (reserved by workflow default/chip)\n")
	terms.Claim, terms.Workflow = structs.ClaimSlots, nil
	terms.CellLevel = "gpu"
	wants(t, f.run(t, "alloc", "status", allocA).out, "= guaranteed (slot of type batch of project chip, level gpu)\n")
	terms.Claim = structs.ClaimCells
	wants(t, f.run(t, "alloc", "status", allocA).out, "= guaranteed (level gpu)\n")
}

// A shared device counts once; what holds and what is not well is named.
func TestNodeStatusCountsDevices(t *testing.T) {
	n := gpuNode(nodeA, "gpu-1")
	n.NodeResources.Devices[0].Instances = append(n.NodeResources.Devices[0].Instances, &structs.NodeDevice{
		ID: "gpu-1-gpu-2", Healthy: true, Locality: &structs.NodeDeviceLocality{PciBusID: "0000:02:00.0"},
	})
	one, two, over := webAlloc(allocA, structs.AllocClientRunning), webAlloc(allocB, structs.AllocClientRunning), webAlloc(evalA, structs.AllocClientComplete)
	over.AllocatedResources.Tasks["serve"].Devices[0].DeviceIDs = []string{"gpu-1-gpu-2"}
	f := newFake(t).on("GET /v1/nodes", []*structs.NodeListStub{nodeStub(n)}).on("GET /v1/node/"+nodeA, n).
		on("GET /v1/node/"+nodeA+"/allocations", []*structs.Allocation{one, two, over})
	got := f.run(t, "node", "status", "gpu-1")
	wants(t, got.out, "nvidia/gpu/H100  3    1     1     1\n", "\ngpu-1-gpu-1 is unhealthy: Xid 79\n")
	got = f.run(t, "node", "status", "-verbose", "gpu-1")
	wants(t, got.out, "gpu-1-gpu-0  <none>        healthy            "+allocA+" web.front[0], "+allocB+" web.front[0]\n",
		"gpu-1-gpu-2  0000:02:00.0  healthy            <none>\n")
	two.DesiredStatus, two.ClientStatus = structs.AllocDesiredSuspend, structs.AllocClientSuspended
	got = f.run(t, "node", "status", "-verbose", "gpu-1")
	wants(t, got.out, "nvidia/gpu/H100  3    1     1     1\n", allocB+" web.front[0] (suspended)\n")
	one.ClientStatus = structs.AllocClientComplete
	got = f.run(t, "node", "status", "gpu-1")
	wants(t, got.out, "nvidia/gpu/H100  3    1     1     1\n", "\n0/8000 MHz  0/4    256 MiB/")
	one.ClientStatus = structs.AllocClientRunning
	n.SchedulingEligibility = structs.NodeIneligible
	wants(t, f.run(t, "node", "status", "gpu-1").out, "nvidia/gpu/H100  3    1     0     1\n")
}
