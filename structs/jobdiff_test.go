package structs

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// lines shows a diff, one change a line.
func lines(d *JobDiff) []string {
	var out []string
	var objects func(at string, list []*ObjectDiff)
	fields := func(at string, list []*FieldDiff) {
		for _, f := range list {
			notes := ""
			if len(f.Annotations) > 0 {
				notes = " (" + strings.Join(f.Annotations, ", ") + ")"
			}
			out = append(out, fmt.Sprintf("%s %s.%s %q→%q%s", f.Type, at, f.Name, f.Old, f.New, notes))
		}
	}
	objects = func(at string, list []*ObjectDiff) {
		for _, o := range list {
			out = append(out, fmt.Sprintf("%s %s.%s", o.Type, at, o.Name))
			fields(at+"."+o.Name, o.Fields)
			objects(at+"."+o.Name, o.Objects)
		}
	}
	out = append(out, d.Type+" "+d.ID)
	fields("job", d.Fields)
	objects("job", d.Objects)
	for _, g := range d.TaskGroups {
		out = append(out, g.Type+" group "+g.Name)
		fields(g.Name, g.Fields)
		objects(g.Name, g.Objects)
		for _, t := range g.Tasks {
			out = append(out, strings.TrimSpace(g.Name+"/"+t.Name+" "+t.Type+" "+strings.Join(t.Annotations, ", ")))
			fields(t.Name, t.Fields)
			objects(t.Name, t.Objects)
		}
	}
	return out
}

func TestDiff(t *testing.T) {
	f := func(old, new *Job, contextual bool, want ...string) {
		t.Helper()
		d := old.Diff(new, contextual)
		d.Annotate(nil)
		if got := lines(d); !reflect.DeepEqual(got, want) {
			t.Errorf("have\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	base := oneTask(t, "", "", "")
	f(base, base.Copy(), false, "None j", "None group g", "g/t None")
	f(base, oneTask(t, `,"Priority":60,"Meta":{"a":"b"},"Version":3`, `,"Count":10`, ""), false,
		"Edited j", `Added job.Meta[a] ""→"b"`, `Edited job.Priority "50"→"60"`,
		"Edited group g", `Edited g.Count "1"→"10" (forces create)`, "g/t None")
	f(oneTask(t, "", `,"Count":10`, ""), oneTask(t, "", `,"Count":9`, ""), false,
		"Edited j", "Edited group g", `Edited g.Count "10"→"9" (forces destroy)`, "g/t None")
	f(base, oneTask(t, "", "", `,"Config":{"command":"x","args":["a"]},"Resources":{"MemoryMB":500}`), false,
		"Edited j", "Edited group g", "g/t Edited forces create/destroy update",
		"Added t.Config", `Added t.Config.args[0] ""→"a"`, `Added t.Config.command ""→"x"`,
		"Edited t.Resources", `Edited t.Resources.MemoryMB "300"→"500"`)
	f(base, oneTask(t, "", "", `,"KillTimeout":"6s"`), false,
		"Edited j", "Edited group g", "g/t Edited forces in-place update", `Edited t.KillTimeout "5000000000"→"6000000000"`)
	f(oneTask(t, `,"Datacenters":["a","b"]`, "", ""), oneTask(t, `,"Datacenters":["b","c"]`, "", ""), false,
		"Edited j", "Edited job.Datacenters", `Deleted job.Datacenters.Datacenters "a"→""`, `Added job.Datacenters.Datacenters ""→"c"`,
		"None group g", "g/t None")
	f(oneTask(t, "", `,"Networks":[{"DynamicPorts":[{"Label":"p","To":1}]}]`, ""),
		oneTask(t, "", `,"Networks":[{"DynamicPorts":[{"Label":"p","To":2}]}]`, ""), true,
		"Edited j", "Edited group g",
		"Edited g.Network", `None g.Network.CIDR ""→""`, `None g.Network.Device ""→""`, `None g.Network.Hostname ""→""`,
		`None g.Network.IP ""→""`, `None g.Network.MBits "0"→"0"`, `None g.Network.Mode ""→""`,
		"Edited g.Network.Dynamic Port", `None g.Network.Dynamic Port.HostNetwork ""→""`,
		`None g.Network.Dynamic Port.IgnoreCollision "false"→"false"`, `None g.Network.Dynamic Port.Label "p"→"p"`,
		`Edited g.Network.Dynamic Port.To "1"→"2"`, `None g.Network.Dynamic Port.Value "0"→"0"`, "g/t None")
	constraint := func(values ...string) *Job {
		list := make([]string, len(values))
		for i, v := range values {
			list[i] = `{"LTarget":"a","RTarget":"` + v + `"}`
		}
		return oneTask(t, `,"Constraints":[`+strings.Join(list, ",")+`]`, "", "")
	}
	f(constraint("x", "y"), constraint("y", "x"), false, "None j", "None group g", "g/t None")
	f(constraint("x", "y"), constraint("y"), false,
		"Edited j", "Deleted job.Constraint", `Deleted job.Constraint.LTarget "a"→""`,
		`Deleted job.Constraint.Operand "="→""`, `Deleted job.Constraint.RTarget "x"→""`, "None group g", "g/t None")
}

func TestDiffOfWholeJobs(t *testing.T) {
	j := oneTask(t, "", "", "")
	f := func(d *JobDiff, want string) {
		t.Helper()
		if d.Type != want || d.ID != "j" || len(d.TaskGroups) != 1 || d.TaskGroups[0].Type != want || d.TaskGroups[0].Tasks[0].Type != want {
			t.Errorf("have %+v", d)
		}
	}
	f((*Job)(nil).Diff(j, false), DiffTypeAdded)
	f(j.Diff(nil, false), DiffTypeDeleted)
	if d := (*Job)(nil).Diff(nil, false); d.Type != DiffTypeNone {
		t.Errorf("have %+v", d)
	}
}

func TestContextualDiffListsTheRest(t *testing.T) {
	d := oneTask(t, "", "", "").Diff(oneTask(t, "", "", `,"Resources":{"MemoryMB":500}`), true)
	resources := d.TaskGroups[0].Tasks[0].Objects[0]
	none := 0
	for _, f := range resources.Fields {
		if f.Type == DiffTypeNone {
			none++
		}
	}
	if none == 0 || len(resources.Fields) != none+1 {
		t.Errorf("have %+v", resources.Fields)
	}
}

func TestJobGroupChange(t *testing.T) {
	f := func(job, group, task string, want Change) {
		t.Helper()
		old, new := oneTask(t, "", "", ""), oneTask(t, job, group, task)
		if got := JobGroupChange(old, new, "g"); got != want {
			t.Errorf("%s %s %s: have %v, want %v", job, group, task, got, want)
		}
		if got := JobGroupChange(new, old, "g"); got != want {
			t.Errorf("back from %s %s %s: have %v, want %v", job, group, task, got, want)
		}
	}
	f("", "", "", ChangeNone)
	f(`,"Version":3,"JobModifyIndex":9,"Status":"running"`, "", "", ChangeNone)
	f(`,"Priority":60`, "", "", ChangeInPlace)
	f(`,"Constraints":[{"LTarget":"a","RTarget":"b"}]`, "", "", ChangeInPlace)
	f(`,"Meta":{"a":"b"}`, "", "", ChangeDestructive)
	f(`,"Affinities":[{"LTarget":"a","RTarget":"b"}]`, "", "", ChangeDestructive)
	f("", `,"Count":3`, "", ChangeInPlace)
	f("", `,"Update":{"MaxParallel":3}`, "", ChangeInPlace)
	f("", `,"RestartPolicy":{"Attempts":3}`, "", ChangeInPlace)
	f("", `,"RestartPolicy":{"RenderTemplates":true}`, "", ChangeDestructive)
	f("", `,"Meta":{"a":"b"}`, "", ChangeDestructive)
	f("", `,"EphemeralDisk":{"SizeMB":500}`, "", ChangeDestructive)
	f("", `,"Networks":[{"DynamicPorts":[{"Label":"p"}]}]`, "", ChangeDestructive)
	f("", `,"MaxRunDuration":"1h"`, "", ChangeInPlace)
	f("", `,"Gang":{}`, "", ChangeDestructive)
	f("", "", `,"Env":{"a":"b"}`, ChangeDestructive)
	f("", "", `,"Config":{"a":1}`, ChangeDestructive)
	f("", "", `,"User":"u"`, ChangeDestructive)
	f("", "", `,"Resources":{"CPU":200}`, ChangeDestructive)
	f("", "", `,"KillTimeout":"9s"`, ChangeInPlace)
	f("", "", `,"LogConfig":{"MaxFiles":3}`, ChangeInPlace)
	f("", "", `,"LogConfig":{"Disabled":true}`, ChangeDestructive)
	f("", "", `,"Services":[{"Name":"s"}]`, ChangeInPlace)
	f("", "", `,"Services":[{"Name":"s","Connect":{}}]`, ChangeDestructive)
	f("", `,"Name":"other"`, "", ChangeDestructive)
}

func TestGroupChangeByTasks(t *testing.T) {
	two := jobOf(t, `{"ID":"j","TaskGroups":[{"Name":"g","Tasks":[{"Name":"a","Driver":"x"},{"Name":"b","Driver":"x"}]}]}`)
	swapped := jobOf(t, `{"ID":"j","TaskGroups":[{"Name":"g","Tasks":[{"Name":"b","Driver":"x"},{"Name":"a","Driver":"x"}]}]}`)
	renamed := jobOf(t, `{"ID":"j","TaskGroups":[{"Name":"g","Tasks":[{"Name":"a","Driver":"x"},{"Name":"c","Driver":"x"}]}]}`)
	f := func(a, b *Job, want Change) {
		t.Helper()
		if got := GroupChange(a.TaskGroups[0], b.TaskGroups[0]); got != want {
			t.Errorf("have %v, want %v", got, want)
		}
	}
	f(two, swapped, ChangeInPlace)
	f(two, renamed, ChangeDestructive)
	f(two, oneTask(t, "", "", ""), ChangeDestructive)
	if got := GroupChange(nil, two.TaskGroups[0]); got != ChangeDestructive {
		t.Errorf("have %v", got)
	}
}

func TestSpecChanged(t *testing.T) {
	f := func(a, b *Job, want bool) {
		t.Helper()
		if got := a.SpecChanged(b); got != want {
			t.Errorf("have %v, want %v", got, want)
		}
	}
	j := oneTask(t, "", "", `,"Config":{"n":1}`)
	f(j, j.Copy(), false)
	other := j.Copy()
	other.Version, other.Status, other.ModifyIndex, other.Stable, other.SubmitTime = 3, "running", 7, true, 9
	other.TaskGroups[0].Tasks[0].Config["n"] = uint64(1) // another codec's idea of 1
	other.Meta = map[string]string{}
	f(j, other, false)
	other.TaskGroups[0].Tasks[0].Config["n"] = int64(2)
	f(j, other, true)
	stopped := j.Copy()
	stopped.Stop = true
	f(j, stopped, true)
	f(j, nil, true)
}

func FuzzJobUnmarshal(f *testing.F) {
	f.Add([]byte(`{"ID":"x","TaskGroups":[{"Count":2,"Volumes":{"v":{}},"Tasks":[{"Config":{"a":[1]}}]}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var j Job
		if json.Unmarshal(raw, &j) != nil {
			return
		}
		j.Canonicalize()
		_ = j.Validate().Err()
		_ = j.Warnings()
		if j.Copy().SpecChanged(&j) {
			t.Fatal("the copy differs")
		}
	})
}
