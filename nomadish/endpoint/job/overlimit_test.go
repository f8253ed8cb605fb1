package job

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/structs"
)

// TestGuaranteedClass: a job that is to run by a claim alone is refused if its namespace owns nothing, or if one of its groups can use no claim.
func TestGuaranteedClass(t *testing.T) {
	s := newSite(t, endpointtest.DGX("a", "r1"))
	s.Put(&structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: "team"}})
	s.Put(&structs.VirtualClusterUpsertEntry{VirtualCluster: &structs.VirtualCluster{Name: "team", Cells: []*structs.CellQuota{{Level: "node", Count: 1}}}, EvalSeed: "seed"})
	group := func(name string, devices ...*structs.RequestedDevice) *structs.TaskGroup {
		return &structs.TaskGroup{Name: name, Count: 1, Tasks: []*structs.Task{{Name: "t", Driver: "d", Resources: &structs.Resources{Devices: devices}}}}
	}
	gpu := func(name string) *structs.RequestedDevice { return &structs.RequestedDevice{Name: name, Count: 1} }
	share := &structs.RequestedDevice{Name: "nvidia/gpu", Count: 1, Share: 500}
	f := func(namespace, kind, want string, groups ...*structs.TaskGroup) {
		t.Helper()
		job := &structs.Job{Namespace: namespace, ID: "j", Type: kind, Class: structs.ClassGuaranteed, TaskGroups: groups}
		err := checkClass(s.Router.Snapshot(), job)
		switch {
		case want == "" && err != nil:
			t.Errorf("%v", err)
		case want != "" && (err == nil || structs.CodeOf(err) != structs.CodeBadRequest || !strings.Contains(err.Error(), want)):
			t.Errorf("%v, want %s", err, want)
		}
	}
	const batch = structs.JobTypeBatch
	f("team", batch, "", group("g", gpu("nvidia/gpu")))
	f("team", batch, "", group("g", gpu("nvidia/gpu"), gpu("gpu")), group("cpu"))
	f("default", batch, `job "j": class is "guaranteed", but namespace "default" owns nothing`, group("g", gpu("nvidia/gpu")))
	f("team", batch, `job "j": class is "guaranteed", but group "cpu" can use no claim: it requests no whole GPUs: only whole GPUs are owned`, group("cpu"))
	f("team", batch, `group "half" can use no claim: it requests no whole GPUs`, group("g", gpu("nvidia/gpu")), group("half", share))
	f("team", batch, `group "g" can use no claim: it requests devices of several kinds`, group("g", gpu("nvidia/gpu/H100"), gpu("nvidia/gpu/A100")))
	f("team", structs.JobTypeSystem, `group "g" can use no claim: instances of system and sysbatch jobs use none`, group("g", gpu("nvidia/gpu")))
	gang := group("g", gpu("nvidia/gpu"))
	gang.Gang = &structs.Gang{Groups: []string{"launcher"}}
	f("team", batch, `group "launcher" can use no claim: it requests no whole GPUs, and its gang uses a claim as a whole`, gang, group("launcher"))
}
