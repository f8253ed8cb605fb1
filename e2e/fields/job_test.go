package fields

import (
	"fmt"
	"maps"
	"reflect"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/e2e/harness"
)

// absent leaves a field of a generated job empty.
type absent struct{}

// jobValues are the values of those fields of a job that cannot be just anything.
// absent are those that the server sets, or that exclude another one.
var jobValues = map[string]any{
	"Job.Region": "global", "Job.Namespace": "default", "Job.Type": "service", "Job.NodePool": "default",
	"Job.Datacenters": []string{"dc1"}, "Job.Priority": 60,
	"Job.Periodic": absent{}, "Job.ParameterizedJob": absent{},
	"Job.Stop": absent{}, "Job.ParentID": absent{}, "Job.Dispatched": absent{}, "Job.DispatchIdempotencyToken": absent{},
	"Job.Payload": absent{}, "Job.NomadTokenID": absent{}, "Job.Status": absent{},
	"Job.StatusDescription": absent{}, "Job.Stable": absent{}, "Job.Version": absent{}, "Job.SubmitTime": absent{},
	"Job.CreateIndex": absent{}, "Job.ModifyIndex": absent{}, "Job.JobModifyIndex": absent{}, "Job.VersionTag": absent{},
	"Job.ConsulNamespace": absent{}, "Job.VaultNamespace": absent{},
	"Constraint.Operand": "=", "Affinity.Operand": "=", "Affinity.Weight": 50, "SpreadTarget.Percent": 40,
	"TaskGroup.Name": "g", "TaskGroup.Count": 3, "TaskGroup.MaxClientDisconnect": absent{},
	"TaskGroup.StopAfterClientDisconnect": absent{}, "TaskGroup.PreventRescheduleOnLost": absent{},
	"DisconnectStrategy.StopOnClientAfter": absent{}, "DisconnectStrategy.Reconcile": "best_score",
	"Task.Name": "t", "Task.Driver": "mock_driver", "Task.KillSignal": "SIGINT", "Task.Config": map[string]any{"run_for": "1h"},
	"Task.Identity": absent{}, "SidecarTask.Driver": "docker", "SidecarTask.KillSignal": "SIGINT",
	"TaskLifecycle.Hook": "prestart", "EphemeralDisk.SizeMB": 5000, "LogConfig.Enabled": absent{}, "LogConfig.Disabled": false,
	"Resources.Cores": absent{}, "Resources.CPU": 200, "Resources.MemoryMB": 100, "Resources.MemoryMaxMB": 200,
	"Resources.Networks": absent{}, "Resources.SecretsMB": absent{},
	"RequestedDevice.Name": "nvidia/gpu", "NUMAResource.Affinity": "none", "NUMAResource.Devices": []string{"nvidia/gpu"},
	"RestartPolicy.Mode": "fail", "RestartPolicy.Interval": time.Hour, "RestartPolicy.Delay": 2 * time.Second, "RestartPolicy.Attempts": 2,
	"ReschedulePolicy.Attempts": 2, "ReschedulePolicy.Interval": time.Hour, "ReschedulePolicy.Delay": 6 * time.Second,
	"ReschedulePolicy.DelayFunction": "fibonacci", "ReschedulePolicy.MaxDelay": time.Minute, "ReschedulePolicy.Unlimited": false,
	"UpdateStrategy.HealthCheck": "task_states", "UpdateStrategy.MinHealthyTime": 3 * time.Second, "UpdateStrategy.Canary": 1,
	"UpdateStrategy.HealthyDeadline": time.Minute, "UpdateStrategy.ProgressDeadline": time.Hour, "UpdateStrategy.MaxParallel": 2,
	"MigrateStrategy.HealthCheck": "task_states", "MigrateStrategy.MinHealthyTime": 3 * time.Second,
	"MigrateStrategy.HealthyDeadline": time.Minute, "MigrateStrategy.MaxParallel": 1,
	"MultiregionStrategy.OnFailure": "fail_all", "MultiregionRegion.Name": "global",
	"MultiregionRegion.Datacenters": []string{"dc1"}, "MultiregionRegion.NodePool": "default", "MultiregionRegion.Meta": map[string]string{"where": "there"},
	"ScalingPolicy.Min": 1, "ScalingPolicy.Max": 9, "ScalingPolicy.Type": "horizontal", "ScalingPolicy.ID": absent{},
	"ScalingPolicy.Namespace": absent{}, "ScalingPolicy.Target": absent{}, "ScalingPolicy.CreateIndex": absent{},
	"ScalingPolicy.ModifyIndex": absent{}, "Task.ScalingPolicies": []*nomad.ScalingPolicy{{Type: "vertical_cpu", Min: harness.Ptr[int64](1), Max: harness.Ptr[int64](2), Policy: map[string]any{"a": "b"}, Enabled: harness.Ptr(true)}},
	"NetworkResource.Mode": "bridge", "NetworkResource.IP": absent{}, "NetworkResource.Device": absent{}, "NetworkResource.CIDR": absent{},
	"DNSConfig.Servers": []string{"10.0.0.2"}, "NetworkResource.MBits": 10,
	"NetworkResource.ReservedPorts": []nomad.Port{{Label: "fixed", Value: 22222, To: 80, HostNetwork: "default", IgnoreCollision: true}},
	"NetworkResource.DynamicPorts":  []nomad.Port{{Label: "http", To: 8080, HostNetwork: "default"}},
	"VolumeRequest.Type":            "csi", "VolumeRequest.AccessMode": "single-node-writer", "VolumeRequest.AttachmentMode": "file-system",
	"VolumeMount.Volume": "key", "VolumeMount.PropagationMode": "private",
	"TaskCSIPluginConfig.Type": "node", "TaskArtifact.GetterMode": "dir", "TaskArtifact.GetterSource": "https://example.com/a",
	"Vault.ChangeMode": "signal", "Vault.ChangeSignal": "SIGHUP",
	"WorkloadIdentity.ChangeMode": "signal", "WorkloadIdentity.ChangeSignal": "SIGHUP",
	"Template.SourcePath": absent{}, "Template.ChangeMode": "script", "Template.ChangeSignal": "SIGHUP", "Template.Perms": "0600",
	"WaitConfig.Min": time.Second, "WaitConfig.Max": time.Minute,
	"TaskScheduleCron.Start": "0 9 * * *", "TaskScheduleCron.End": "0 17", "TaskScheduleCron.Timezone": "UTC",
	"Service.Provider": "consul", "Service.TaskName": "t", "Service.PortLabel": "http", "Service.AddressMode": "auto",
	"Service.OnUpdate": "ignore", "Service.Kind": absent{},
	"ServiceCheck.Type": "http", "ServiceCheck.PortLabel": "http", "ServiceCheck.AddressMode": "host", "ServiceCheck.TaskName": "t",
	"ServiceCheck.InitialStatus": "passing", "ServiceCheck.OnUpdate": "ignore", "ServiceCheck.Protocol": "http", "ServiceCheck.Method": "POST",
	"ConsulProxy.ExposeConfig": absent{}, "ConsulExposeConfig.Path": absent{}, "ConsulMeshGateway.Mode": "local",
	"ConsulUpstream.DestinationType": "service", "ConsulIngressListener.Protocol": "http",
	"PeriodicConfig.Spec": absent{}, "PeriodicConfig.Specs": []string{"0 3 * * *"}, "PeriodicConfig.SpecType": "cron",
	"PeriodicConfig.TimeZone": "UTC", "ParameterizedJobConfig.Payload": "required",
}

// fullJobs are jobs that together state every field of a job spec there is.
func fullJobs(t *testing.T) []*nomad.Job {
	batch := map[string]any{
		"Job.Type": "batch", "Job.Update": absent{}, "Job.Migrate": absent{}, "TaskGroup.Update": absent{}, "TaskGroup.Migrate": absent{},
		"Job.Multiregion": absent{}, "Resources.CPU": absent{}, "Resources.Cores": 2,
		"DisconnectStrategy.LostAfter": absent{}, "DisconnectStrategy.StopOnClientAfter": time.Minute,
		"ReschedulePolicy.Unlimited": true, "ReschedulePolicy.Attempts": 0, "Template.SourcePath": "local/a", "Template.EmbeddedTmpl": absent{},
		"LogConfig.Disabled": true,
	}
	variant := func(id string, values ...map[string]any) *nomad.Job {
		g := &generator{t: t, values: maps.Clone(jobValues)}
		g.values["Job.ID"] = id
		for _, m := range values {
			maps.Copy(g.values, m)
		}
		var job nomad.Job
		g.fill(reflect.ValueOf(&job).Elem())
		return &job
	}
	return []*nomad.Job{
		variant("full"),
		variant("full-periodic", batch, map[string]any{"Job.Periodic": nil}),
		variant("full-parameterized", batch, map[string]any{"Job.ParameterizedJob": nil}),
		variant("full-plain-cron", batch, map[string]any{
			"Job.Periodic": nil, "PeriodicConfig.Spec": "0 4 * * *", "PeriodicConfig.Specs": absent{},
		}),
	}
}

// generator fills a value: every field with something of its own, so that fields
// that change places are found.
type generator struct {
	t      *testing.T
	values map[string]any // "Type.Field" → its value; nil: any
	count  int
}

func (g *generator) fill(v reflect.Value) {
	g.count++
	switch v.Interface().(type) {
	case time.Duration:
		v.SetInt(int64(time.Duration(g.count) * time.Second))
		return
	case map[string]any:
		v.Set(reflect.ValueOf(map[string]any{"key": fmt.Sprintf("any-%d", g.count)}))
		return
	}
	// a job has no others.
	//exhaustive:ignore
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text-%d", g.count))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int8:
		v.SetInt(int64(g.count%100 + 1))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(g.count%100 + 1)) // it counts from 0
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		g.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		g.fill(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		elem := reflect.New(v.Type().Elem()).Elem()
		g.fill(elem)
		if elem.Kind() == reflect.Pointer && elem.Elem().Kind() == reflect.Struct {
			if name := elem.Elem().FieldByName("Name"); name.IsValid() {
				name.SetString("key")
			}
		}
		v.SetMapIndex(reflect.ValueOf("key"), elem)
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(v.Type()) {
			if f.Tag.Get("json") != "-" {
				g.field(v.FieldByIndex(f.Index), v.Type().Name()+"."+f.Name)
			}
		}
	default:
		g.t.Fatalf("a job has a %s", v.Type())
	}
}

func (g *generator) field(v reflect.Value, name string) {
	value := g.values[name]
	if value == nil {
		g.fill(v)
		return
	}
	if _, ok := value.(absent); ok {
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	v.Set(reflect.ValueOf(value).Convert(v.Type()))
}

// TestFieldsMoved: the older forms of disconnect are answered as what they mean.
func TestFieldsMoved(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	f := func(change func(g *nomad.TaskGroup), want nomad.DisconnectStrategy) {
		t.Helper()
		job := mockJob("old", "service", map[string]any{"run_for": "1h"})
		change(job.TaskGroups[0])
		if _, _, err := a.Nomad.Jobs().Register(job, nil); err != nil {
			t.Fatal(err)
		}
		got, _, err := a.Nomad.Jobs().Info("old", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range same(&want, got.TaskGroups[0].Disconnect) {
			t.Error(wrong)
		}
	}
	f(func(g *nomad.TaskGroup) { g.MaxClientDisconnect = harness.Ptr(time.Minute) }, nomad.DisconnectStrategy{LostAfter: harness.Ptr(time.Minute), Replace: harness.Ptr(true)}) //nolint:staticcheck // the old form is what is tested
	f(func(g *nomad.TaskGroup) { g.StopAfterClientDisconnect = harness.Ptr(time.Hour) }, nomad.DisconnectStrategy{StopOnClientAfter: harness.Ptr(time.Hour)})                   //nolint:staticcheck // the old form is what is tested
	f(func(g *nomad.TaskGroup) { g.PreventRescheduleOnLost = harness.Ptr(true) }, nomad.DisconnectStrategy{Replace: harness.Ptr(false)})                                        //nolint:staticcheck // the old form is what is tested
}
