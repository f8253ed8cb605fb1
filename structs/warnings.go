package structs

import (
	"cmp"
	"reflect"
	"strings"
	"sync"
	"time"
)

// noBehaviour lists the fields that are accepted, kept and returned, but that
// nothing acts on yet, or not as they request (halfEffects), as Type.Field. A value that means the default is not
// worth a warning: it follows the name after a colon. Whoever makes a field
// work deletes its row.
var noBehaviour = sync.OnceValue(func() map[string]string {
	return warningTable(`
	MultiregionStrategy.MaxParallel
	Job.Periodic
	Job.ParameterizedJob
	Job.ConsulNamespace
	Job.VaultNamespace

	TaskGroup.Volumes
	TaskGroup.Services
	TaskGroup.Consul
	TaskGroup.ShutdownDelay
	EphemeralDisk.Sticky
	EphemeralDisk.Migrate
	UpdateStrategy.Stagger:30s
	UpdateStrategy.ProgressDeadline:10m
	UpdateStrategy.Canary
	UpdateStrategy.AutoRevert
	UpdateStrategy.AutoPromote
	RestartPolicy.RenderTemplates

	Task.Kind
	Task.Services
	Task.Artifacts
	Task.Templates
	Task.Vault
	Task.Consul
	Task.DispatchPayload
	Task.VolumeMounts
	Task.CSIPluginConfig
	Task.ScalingPolicies
	Task.Secrets
	Task.Identity
	Task.Identities
	Task.Actions
	Task.Schedule

	Resources.DiskMB
	Resources.SecretsMB
	Resources.IOPS
	Resources.Networks
	NUMAResource.Affinity:none
	NUMAResource.Devices
	NetworkResource.DNS
	NetworkResource.CNI
	NetworkResource.Hostname
	NetworkResource.CIDR
	NetworkResource.Device
	NetworkResource.MBits
	NetworkResource.Mode:host
`)
})

// noEffect is the text about the fields of noBehaviour that are not in halfEffects.
const noEffect = "is accepted but has no effect yet"

// halfEffects are the texts about those fields of noBehaviour that do keep a job from running, or from being placed.
var halfEffects = map[string]string{
	"Job.Periodic":         "is accepted, but the job will not run: there are no periodic jobs yet",
	"Job.ParameterizedJob": "is accepted, but the job will not run: there are no parameterized jobs yet",
	"TaskGroup.Volumes":    "is accepted: the group is placed only on nodes that have such a volume, but it is not mounted yet",
}

func warningTable(text string) map[string]string {
	table := map[string]string{}
	for row := range strings.FieldsSeq(text) {
		name, means, _ := strings.Cut(row, ":")
		table[name] = means
	}
	return table
}

// Warnings names every field that a canonical job states and that has no
// behaviour yet, or only a part of it, in the order of the specification.
func (j *Job) Warnings() []string { return j.WarningList().Strings() }

// WarningList is Warnings with the places apart.
func (j *Job) WarningList() Problems {
	var list problemList
	walkSpec(reflect.ValueOf(j).Elem(), &specPath{block: "job", label: j.ID, index: -1}, func(at *specPath, v reflect.Value) {
		for _, f := range specOf(v.Type()).silent {
			if states(v.FieldByIndex(f.Index), f.text) {
				list.at(at.path()).addf(cmp.Or(f.HCL, f.Name), "%s", cmp.Or(halfEffects[v.Type().Name()+"."+f.Name], noEffect))
			}
		}
	})
	return list.all
}

// states reports whether a value is neither empty nor the default.
func states(v reflect.Value, means string) bool {
	// the others hold nothing of interest here.
	//exhaustive:ignore
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || v.Elem().Kind() == reflect.Struct {
			return !v.IsNil()
		}
		return states(v.Elem(), means)
	case reflect.Slice, reflect.Map:
		return v.Len() > 0
	case reflect.String:
		return v.String() != "" && v.String() != means
	case reflect.Int64:
		if d, err := time.ParseDuration(means); err == nil && v.Int() == int64(d) {
			return false
		}
	}
	return !v.IsZero()
}
