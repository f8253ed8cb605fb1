package testcluster

import "github.com/nomadish/nomadish/structs"

// Node returns a ready node of the datacenter dc1 and the default pool that runs mock_driver, with so many MHz and a TiB of memory
// and of disk.
func Node(id string, mhz int64) *structs.Node {
	n := &structs.Node{
		ID: id, SecretID: "s", Name: id, Datacenter: "dc1", NodePool: "default", Status: structs.NodeStatusReady,
		SchedulingEligibility: structs.NodeEligible, Attributes: map[string]string{"kernel.name": "linux"},
		Drivers: map[string]*structs.DriverInfo{"mock_driver": {Detected: true, Healthy: true}},
		NodeResources: &structs.NodeResources{
			Cpu: structs.NodeCpuResources{CpuShares: mhz, TotalCpuCores: 4}, Memory: structs.NodeMemoryResources{MemoryMB: 1 << 20},
			Disk: structs.NodeDiskResources{DiskMB: 1 << 20}, MinDynamicPort: 20000, MaxDynamicPort: 32000,
		},
	}
	n.ComputeClass()
	return n
}

// Job returns a job of the default namespace in its canonical form, with one group, g, of count instances. Their only task, t, requests
// for 100 MHz and 10 MiB.
func Job(id, kind string, count int) *structs.Job {
	j := &structs.Job{ID: id, Type: kind, Priority: 50, Datacenters: []string{"*"}, TaskGroups: []*structs.TaskGroup{{
		Name: "g", Count: count, Tasks: []*structs.Task{{
			Name: "t", Driver: "mock_driver", Resources: &structs.Resources{CPU: 100, MemoryMB: 10},
		}},
	}}}
	j.Canonicalize()
	return j
}

// Eval returns an evaluation of a job that came of its being registered.
func Eval(id string, job *structs.Job, status string) *structs.Evaluation {
	return &structs.Evaluation{
		ID: id, Namespace: job.Namespace, JobID: job.ID, Priority: job.Priority, Type: job.Type,
		TriggeredBy: structs.EvalTriggerJobRegister, Status: status,
	}
}

// Batch returns the placement of n instances of a job's group g on a node, the first with the index 0. They take nothing of the
// node, and AllocID returns their IDs.
func Batch(job, node, seed string, n int) *structs.PlacementBatch {
	b := &structs.PlacementBatch{
		Namespace: structs.DefaultNamespace, JobID: job, Group: "g", Seed: seed, Nodes: []structs.PlacedNode{{ID: node, Name: node}},
		Resources: &structs.AllocatedResources{},
	}
	for i := range n {
		b.Instances = append(b.Instances, structs.Instance{Ordinal: uint32(i), Index: i}) // small
	}
	return b
}

// Place returns the entry that commits placements for an evaluation, to which they are attributed.
func Place(eval string, time int64, batches ...*structs.PlacementBatch) *structs.PlanCommit {
	for _, b := range batches {
		b.EvalID = eval
	}
	return Commit(&structs.JudgedPlan{EvalID: eval, Time: time, Place: batches})
}

// Commit returns the entry that commits judged plans.
func Commit(plans ...*structs.JudgedPlan) *structs.PlanCommit {
	return &structs.PlanCommit{Plans: plans}
}

// AllocID returns the ID of an instance that was placed with a seed, by its place in its batch.
func AllocID(seed string, i int) string { return structs.DeriveID(seed, uint64(i)) } // not negative
