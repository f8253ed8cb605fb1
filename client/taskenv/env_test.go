package taskenv

import (
	"reflect"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

func input() Input {
	return Input{
		Region: "global", AllocDir: "/a/alloc", TaskDir: "/a/web/local", SecretsDir: "/a/web/secrets",
		Base: map[string]string{"PATH": "/bin", "HOME": "/root"},
		Node: &structs.Node{
			ID: "node-id", Name: "n1", Datacenter: "dc1", NodeClass: "big", NodePool: "gpu",
			Attributes: map[string]string{"kernel.name": "linux"}, Meta: map[string]string{"rack": "r7"},
		},
		Task: &structs.Task{Name: "web", Env: map[string]string{"PATH": "/opt:${PATH}", "RACK": "${meta.rack}"}, Meta: map[string]string{"a-b": "task ${node.datacenter}"}},
		Alloc: &structs.Allocation{
			ID: "01234567-89ab", Name: "shop.front[12]", Namespace: "prod", JobID: "shop", TaskGroup: "front",
			Job: &structs.Job{ID: "shop", Name: "Shop", ParentID: "parent", Meta: map[string]string{"a-b": "job", "team": "t"},
				TaskGroups: []*structs.TaskGroup{{Name: "front", Meta: map[string]string{"team": "group"}}}},
			AllocatedResources: &structs.AllocatedResources{
				Shared: structs.AllocatedSharedResources{Ports: []structs.PortMapping{
					{Label: "http", Value: 20001, To: 80, HostIP: "10.0.0.1"}, {Label: "adm-in", Value: 20002, HostIP: "fd00::1"},
				}},
				Tasks: map[string]*structs.AllocatedTaskResources{
					"web": {
						Cpu: structs.AllocatedCpuResources{CpuShares: 500, ReservedCores: []uint16{4, 0, 1, 2, 6}}, Memory: structs.AllocatedMemoryResources{MemoryMB: 64, MemoryMaxMB: 128},
						Devices: []*structs.AllocatedDeviceResource{{Vendor: "nvidia", Type: "gpu", Name: "H100", DeviceIDs: []string{"g0", "g1"}}},
					},
					"db": {Networks: []*structs.NetworkResource{{IP: "10.0.0.2", ReservedPorts: []structs.Port{{Label: "sql", Value: 5432}}}}},
				},
			},
		},
	}
}

func TestEnvironment(t *testing.T) {
	vars := Build(input()).Vars()
	f := func(name, want string) {
		t.Helper()
		if got := vars[name]; got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
		delete(vars, name)
	}
	f("NOMAD_ALLOC_DIR", "/a/alloc")
	f("NOMAD_TASK_DIR", "/a/web/local")
	f("NOMAD_SECRETS_DIR", "/a/web/secrets")
	f("NOMAD_ALLOC_ID", "01234567-89ab")
	f("NOMAD_SHORT_ALLOC_ID", "01234567")
	f("NOMAD_ALLOC_NAME", "shop.front[12]")
	f("NOMAD_ALLOC_INDEX", "12")
	f("NOMAD_GROUP_NAME", "front")
	f("NOMAD_TASK_NAME", "web")
	f("NOMAD_JOB_ID", "shop")
	f("NOMAD_JOB_NAME", "Shop")
	f("NOMAD_JOB_PARENT_ID", "parent")
	f("NOMAD_DC", "dc1")
	f("NOMAD_REGION", "global")
	f("NOMAD_NAMESPACE", "prod")
	f("NOMAD_CPU_LIMIT", "500")
	f("NOMAD_CPU_CORES", "0-2,4,6")
	f("NOMAD_MEMORY_LIMIT", "64")
	f("NOMAD_MEMORY_MAX_LIMIT", "128")
	f("NOMAD_META_a_b", "task dc1")
	f("NOMAD_META_A_B", "task dc1")
	f("NOMAD_META_team", "group")
	f("NOMAD_META_TEAM", "group")
	f("NOMAD_IP_http", "10.0.0.1")
	f("NOMAD_PORT_http", "80")
	f("NOMAD_ADDR_http", "10.0.0.1:20001")
	f("NOMAD_HOST_IP_http", "10.0.0.1")
	f("NOMAD_HOST_PORT_http", "20001")
	f("NOMAD_HOST_ADDR_http", "10.0.0.1:20001")
	f("NOMAD_ALLOC_IP_http", "10.0.0.1")
	f("NOMAD_ALLOC_PORT_http", "80")
	f("NOMAD_ALLOC_ADDR_http", "10.0.0.1:80")
	f("NOMAD_PORT_adm_in", "20002")
	f("NOMAD_ADDR_adm_in", "[fd00::1]:20002")
	f("NOMAD_PORT_db_sql", "5432")
	f("NVIDIA_VISIBLE_DEVICES", "g0,g1")
	f("CUDA_VISIBLE_DEVICES", "g0,g1")
	f("NOMADISH_REQUEUED", "0")
	f("PATH", "/opt:/bin")
	f("HOME", "/root")
	f("RACK", "r7")
	for _, gone := range []string{"IP", "HOST_IP", "HOST_PORT", "HOST_ADDR", "ALLOC_IP", "ALLOC_PORT", "ALLOC_ADDR"} {
		delete(vars, "NOMAD_"+gone+"_adm_in")
		delete(vars, "NOMAD_"+gone+"_db_sql")
	}
	delete(vars, "NOMAD_ADDR_db_sql")
	if len(vars) != 0 {
		t.Errorf("also set: %v", vars)
	}
}

// TestRequeued: a task knows how often its instance was requeued, and why it was the last time.
func TestRequeued(t *testing.T) {
	in := input()
	in.Alloc.Requeues, in.Alloc.RequeueReason = 2, "its node needed the memory"
	vars := Build(in).Vars()
	if vars["NOMADISH_REQUEUED"] != "2" || vars["NOMADISH_REQUEUE_REASON"] != "its node needed the memory" {
		t.Errorf("%q, %q", vars["NOMADISH_REQUEUED"], vars["NOMADISH_REQUEUE_REASON"])
	}
}

// TestWorkflow: a task of a workflow's job knows which run and stage it is of; other tasks have no such variables.
func TestWorkflow(t *testing.T) {
	in := input()
	in.Alloc.Job.Workflow = &structs.JobWorkflow{ID: "chip", Run: 3, Stage: "place", Attempt: 2}
	vars := Build(in).Vars()
	for name, want := range map[string]string{"": "chip", "_RUN": "3", "_STAGE": "place", "_ATTEMPT": "2"} {
		if got := vars["NOMADISH_WORKFLOW"+name]; got != want {
			t.Errorf("NOMADISH_WORKFLOW%s is %q, want %q", name, got, want)
		}
	}
}

func TestReplace(t *testing.T) {
	e := Build(input())
	f := func(in, want string) {
		t.Helper()
		if got := e.Replace(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	f("", "")
	f("plain", "plain")
	f("$HOME", "$HOME")
	f("${NOMAD_ALLOC_INDEX}", "12")
	f("a${NOMAD_ALLOC_INDEX}b${NOMAD_PORT_http}c", "a12b80c")
	f("${ NOMAD_ALLOC_INDEX }", "12")
	f("${env.HOME} ${env[\"HOME\"]}", "/root /root")
	f("${attr.kernel.name}", "linux")
	f("${meta.rack} ${meta[\"rack\"]}", "r7 r7")
	f("${node.unique.id} ${node.unique.name} ${node.class} ${node.pool} ${node.region}", "node-id n1 big gpu global")
	f("${unknown} ${attr.none}", "${unknown} ${attr.none}")
	f("${", "${")
	f("${}", "${}")
	f("${open", "${open")
	f("x${open ${node.class}}", "x${open big}")
	f("${meta[}", "${meta[}")
}

func TestReplaceConfig(t *testing.T) {
	e := Build(input())
	in := map[string]any{
		"command": "${node.class}", "n": 3, "args": []any{"${node.pool}", true, []any{"${node.class}"}}, "l": []string{"${node.class}"},
		"m": map[string]any{"${node.class}": "${node.class}"}, "s": map[string]string{"k": "${node.class}"},
	}
	got := e.ReplaceConfig(in)
	want := map[string]any{
		"command": "big", "n": 3, "args": []any{"gpu", true, []any{"big"}}, "l": []string{"big"},
		"m": map[string]any{"${node.class}": "big"}, "s": map[string]string{"k": "big"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if in["command"] != "${node.class}" {
		t.Error("the argument was changed")
	}
}

func FuzzReplace(f *testing.F) {
	e := Build(input())
	f.Add("${a}${NOMAD_DC}${${")
	f.Fuzz(func(t *testing.T, s string) {
		if got := e.Replace(s); len(s) > 0 && len(got) == 0 {
			t.Errorf("%q vanished", s)
		}
	})
}

func TestRefers(t *testing.T) {
	f := func(v any, want bool) {
		t.Helper()
		if got := Refers(map[string]any{"first": 1, "second": v}); got != want {
			t.Errorf("%v: %v, want %v", v, got, want)
		}
	}
	f(nil, false)
	f("plain", false)
	f("$HOME", false)
	f("${NOMAD_ALLOC_INDEX}", true)
	f("a${b", true)
	f(3.5, false)
	f([]any{"a", []any{"b"}}, false)
	f([]any{"a", []any{"${b}"}}, true)
	f(map[string]any{"k": true}, false)
	f(map[string]any{"k": "${b}"}, true)
	f([]string{"a"}, true) // it may
}
