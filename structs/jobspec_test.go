package structs

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// jobOf reads a canonical job from JSON.
func jobOf(t *testing.T, text string) *Job {
	t.Helper()
	var j Job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		t.Fatal(err)
	}
	j.Canonicalize()
	return &j
}

// oneTask is a job with one group and one task, with more fields for each.
func oneTask(t *testing.T, job, group, task string) *Job {
	t.Helper()
	return jobOf(t, `{"ID":"j"`+job+`,"TaskGroups":[{"Name":"g"`+group+`,"Tasks":[{"Name":"t","Driver":"raw_exec"`+task+`}]}]}`)
}

func TestPolicyDefaults(t *testing.T) {
	f := func(jobType, restart, reschedule string, update, migrate bool) {
		t.Helper()
		g := oneTask(t, `,"Type":"`+jobType+`"`, "", "").TaskGroups[0]
		show := func(v any) string {
			raw, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			return string(raw)
		}
		if got := show(g.RestartPolicy); got != restart {
			t.Errorf("%s: restart %s", jobType, got)
		}
		if got := show(g.ReschedulePolicy); got != reschedule {
			t.Errorf("%s: reschedule %s", jobType, got)
		}
		if (g.Update != nil) != update || (g.Migrate != nil) != migrate {
			t.Errorf("%s: update %v, migrate %v", jobType, g.Update, g.Migrate)
		}
	}
	long := `{"Interval":1800000000000,"Attempts":2,"Delay":15000000000,"Mode":"fail","RenderTemplates":false}`
	short := `{"Interval":86400000000000,"Attempts":3,"Delay":15000000000,"Mode":"fail","RenderTemplates":false}`
	f("service", long, `{"Attempts":0,"Interval":0,"Delay":30000000000,"DelayFunction":"exponential","MaxDelay":3600000000000,"Unlimited":true}`, true, true)
	f("batch", short, `{"Attempts":1,"Interval":86400000000000,"Delay":5000000000,"DelayFunction":"constant","MaxDelay":0,"Unlimited":false}`, false, false)
	f("system", long, "null", true, false)
	f("sysbatch", short, "null", false, false)
}

func TestPoliciesMerge(t *testing.T) {
	j := oneTask(t, `,"Update":{"MaxParallel":3,"Canary":1},"Reschedule":{"Attempts":4,"Interval":"1h"}`,
		`,"Update":{"Canary":0},"RestartPolicy":{"Attempts":7,"Delay":"1s"}`, `,"RestartPolicy":{"Mode":"delay"}`)
	g := j.TaskGroups[0]
	if *g.Update.MaxParallel != 3 || *g.Update.Canary != 0 || *g.Update.Stagger != 30*time.Second {
		t.Errorf("update %+v", g.Update)
	}
	if *g.ReschedulePolicy.Attempts != 4 || *g.ReschedulePolicy.Unlimited || *g.ReschedulePolicy.Interval != time.Hour {
		t.Errorf("a stated limit must be one: %+v", g.ReschedulePolicy)
	}
	if p := g.Tasks[0].RestartPolicy; *p.Attempts != 7 || *p.Mode != "delay" || *g.RestartPolicy.Mode != "fail" {
		t.Errorf("restart %+v in %+v", p, g.RestartPolicy)
	}
	if g.Tasks[0].RestartPolicy.Attempts == g.RestartPolicy.Attempts {
		t.Error("a task's policy shares memory with its group's")
	}
}

func TestCanonicalize(t *testing.T) {
	f := func(j *Job, get func(*Job) any, want any) {
		t.Helper()
		if got := get(j); !reflect.DeepEqual(got, want) {
			t.Errorf("have %v, want %v", got, want)
		}
	}
	task := func(j *Job) *Task { return j.TaskGroups[0].Tasks[0] }
	f(oneTask(t, "", "", ""), func(j *Job) any {
		return []any{j.Name, j.Type, j.Priority, j.Namespace, j.Region, j.NodePool, j.Datacenters}
	}, []any{"j", "service", 50, "default", "global", "default", []string{"*"}})
	f(oneTask(t, "", "", ""), func(j *Job) any {
		r := task(j).Resources
		return []int{r.CPU, r.Cores, r.MemoryMB, j.TaskGroups[0].EphemeralDisk.SizeMB, task(j).LogConfig.MaxFiles}
	}, []int{100, 0, 300, 300, 10})
	f(oneTask(t, "", "", `,"Resources":{"Cores":2}`), func(j *Job) any { return task(j).Resources.CPU }, 0)
	f(oneTask(t, "", "", `,"LogConfig":{"Enabled":false}`), func(j *Job) any { return task(j).LogConfig.Disabled }, true)
	f(oneTask(t, "", `,"Networks":[{"DynamicPorts":[{"Label":"a"},{"Label":"b","Value":80}]}]`, ""), func(j *Job) any {
		n := j.TaskGroups[0].Networks[0]
		return []string{n.DynamicPorts[0].Label, n.ReservedPorts[0].Label}
	}, []string{"a", "b"})
	f(oneTask(t, "", `,"MaxClientDisconnect":"1m","PreventRescheduleOnLost":true`, ""), func(j *Job) any {
		return *j.TaskGroups[0].Disconnect
	}, DisconnectStrategy{LostAfter: time.Minute, Reconcile: "best_score"})
	f(oneTask(t, `,"Constraints":[{"LTarget":"a","RTarget":"b"},{"Operand":"is"},{"Operand":"not"}]`, "", ""), func(j *Job) any {
		return []string{j.Constraints[0].Operand, j.Constraints[1].Operand, j.Constraints[2].Operand}
	}, []string{"=", "=", "!="})
	f(oneTask(t, "", "", `,"Identities":[{"Name":"x"},{"Audience":["a"]}]`), func(j *Job) any {
		return []any{task(j).Identity.Name, len(task(j).Identities)}
	}, []any{"default", 1})
	f(oneTask(t, "", `,"Count":null,"Scaling":{"Min":2,"Max":4}`, ""), func(j *Job) any { return j.TaskGroups[0].Count }, 2)
	f(oneTask(t, "", `,"Count":3,"Scaling":{"Max":4}`, ""), func(j *Job) any { return j.TaskGroups[0].Scaling.Min }, int64(3))
	f(oneTask(t, "", `,"Count":0`, ""), func(j *Job) any { return j.TaskGroups[0].Count }, 0)
}

func TestJSON(t *testing.T) {
	f := func(text string, get func(*Job) any, want any) {
		t.Helper()
		var j Job
		if err := json.Unmarshal([]byte(text), &j); err != nil {
			t.Errorf("%s: %v", text, err)
			return
		}
		if got := get(&j); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: have %v, want %v", text, got, want)
		}
	}
	f(`null`, func(j *Job) any { return j.ID }, "")
	f(`{"id":"a","PRIORITY":7,"unknown":[]}`, func(j *Job) any { return []any{j.ID, j.Priority} }, []any{"a", 7})
	f(`{"Priority":null}`, func(j *Job) any { return j.Priority }, 0)
	f(`{"Priority":6e1,"Version":18446744073709551615}`, func(j *Job) any { return []any{j.Priority, j.Version} },
		[]any{60, uint64(18446744073709551615)})
	f(`{"Payload":"aGk="}`, func(j *Job) any { return string(j.Payload) }, "hi")
	f(`{"TaskGroups":[{"MaxRunDuration":"2m","ShutdownDelay":5}]}`, func(j *Job) any {
		return []time.Duration{j.TaskGroups[0].MaxRunDuration, j.TaskGroups[0].ShutdownDelay}
	}, []time.Duration{2 * time.Minute, 5})
	f(`{"TaskGroups":[{"Tasks":[{"Config":{"a":1,"b":1.5,"c":[true,null,{"d":"e"}]}}]}]}`, func(j *Job) any {
		return j.TaskGroups[0].Tasks[0].Config
	}, map[string]any{"a": int64(1), "b": 1.5, "c": []any{true, nil, map[string]any{"d": "e"}}})

	bad := func(text, want string) {
		t.Helper()
		var j Job
		if err := json.Unmarshal([]byte(text), &j); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: have %v, want %q", text, err, want)
		}
	}
	bad(`[]`, "the value: want an object, have a list")
	bad(`{"Priority":"high"}`, "Priority: want a number, have a string")
	bad(`{"Priority":1.5}`, "Priority: want a whole number that fits 64 bits, have 1.5")
	bad(`{"Version":-1}`, "Version: want a whole number from 0")
	bad(`{"Datacenters":"dc1"}`, "Datacenters: want a list, have a string")
	bad(`{"Meta":{"a":1}}`, `Meta["a"]: want a string, have a number`)
	bad(`{"TaskGroups":[{"Tasks":[{},{"KillTimeout":"soon"}]}]}`, `TaskGroups[0].Tasks[1].KillTimeout: want a duration such as "30s"`)
	bad(`{"TaskGroups":[null]}`, "TaskGroups[0]: must not be null")
	bad(`{"TaskGroups":[{"Volumes":{"v":null}}]}`, `TaskGroups[0].Volumes["v"]: must not be null`)
	bad(`{"Payload":"?"}`, "Payload: illegal base64")
	bad(`{"Stop":1}`, "Stop: want true or false, have a number")
}

func TestValidateNamesThePlace(t *testing.T) {
	f := func(j *Job, want ...string) {
		t.Helper()
		if got := j.Validate().Strings(); !reflect.DeepEqual(got, want) {
			t.Errorf("have %q, want %q", got, want)
		}
	}
	f(oneTask(t, "", "", ""), []string{}...)
	f(oneTask(t, `,"Priority":101`, `,"Count":-1`, `,"KillTimeout":-1`),
		`job "j": priority: must be between 1 and 100, not 101`,
		`job "j" > group "g": count: must be between 0 and 10000000, not -1`,
		`job "j" > group "g" > task "t": kill_timeout: must not be negative, not "-1ns"`)
	f(oneTask(t, `,"Type":"_core"`, "", ""),
		`job "j": type: must be "service", "batch", "system" or "sysbatch", not "_core"`)
	f(oneTask(t, "", "", `,"Resources":{"Devices":[{"Name":"gpu","Topology":{"Level":"a b"}}]}`),
		`job "j" > group "g" > task "t" > resources > device "gpu" > topology: level: must be a level of the topology such as "pcie", "socket" or "node", not "a b"`)
	f(jobOf(t, `{"ID":"j"}`), `job "j": must have a group with a task in it`)
}

// Destinations are relative to the task's directory and may lie anywhere in its allocation.
func TestDestinationsStayWithinTheAllocation(t *testing.T) {
	fields := map[string]string{
		`artifact[0]: destination: must not leave the allocation's directory`: `,"Artifacts":[{"GetterSource":"s","RelativeDest":%q}]`,
		`template[0]: destination: must not leave the allocation's directory`: `,"Templates":[{"EmbeddedTmpl":"d","DestPath":%q}]`,
		`dispatch_payload: file: must not leave the allocation's directory`:   `,"DispatchPayload":{"File":%q}`,
	}
	f := func(dest string, leaves ...string) { // leaves: parts of the fields in which it leaves the allocation
		t.Helper()
		for problem, field := range fields {
			got := strings.Join(oneTask(t, "", "", fmt.Sprintf(field, dest)).Validate().Strings(), "\n")
			want := slices.ContainsFunc(leaves, func(part string) bool { return strings.HasPrefix(problem, part) })
			if want != strings.Contains(got, problem) || !want && got != "" {
				t.Errorf("%q: %s: have %q, refused %v wanted", dest, problem, got, want)
			}
		}
	}
	all := []string{"artifact", "template", "dispatch"}
	f("local/x")
	f("../alloc/data/x")
	f("../alloc")
	f("local/../../alloc/x")
	f("/etc/passwd") // within the task's directory
	f("${NOMAD_ALLOC_DIR}/x")
	f("../../alloc/x", "artifact", "template") // the payload's file is relative to task/local
	f("../..", "artifact", "template")
	f("../alloc/../../x", "artifact", "template")
	f("../../../x", all...)
	f(`..\..\..\x`, all...)
	f("/../../../x", all...)
}

func TestCanariesAreBounded(t *testing.T) {
	f := func(more, group string, want ...string) {
		t.Helper()
		if got := oneTask(t, more, group, "").Validate().Strings(); !slices.Equal(got, want) {
			t.Errorf("%s%s: have %q, want %q", more, group, got, want)
		}
	}
	const at = `job "j" > group "g" > update: canary: must be at most `
	f("", `,"Count":3,"Update":{"Canary":3}`)
	f("", `,"Count":3,"Update":{"Canary":4}`, at+"the group's count of 3, not 4")
	f(`,"Type":"system"`, `,"Update":{"Canary":1}`)
	f(`,"Type":"system"`, `,"Update":{"Canary":100}`) // percent of the nodes
	f(`,"Type":"system"`, `,"Update":{"Canary":101}`, at+"100, the percentage of a system job's nodes, not 101")
}

// As in Nomad, an ID is not empty and holds no spaces and zero bytes. All else is for whoever shows it.
func TestJobIDs(t *testing.T) {
	f := func(id string, want ...string) {
		t.Helper()
		j := oneTask(t, "", "", "")
		j.ID = id
		var got []string
		for _, p := range j.Validate() {
			got = append(got, p.Field+": "+p.Text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: have %q, want %q", id, got, want)
		}
	}
	for _, id := range []string{"a/b", "/", ".", "..", "a%2Fb", "100%", "a?b#c&d=e", `a"b'c`, `a\b`, "a:b*", "ü-日本-🚀", "[0].{x}$y", "a\u00a0b", "-a",
		"a\nb", "a\tb", "a\x1b[0m", "a\u0085b", "a\x7fb", "a\u202eb", "job-id/with\\troublesome:characters\n?&字"} {
		f(id)
	}
	f("", "id: must not be empty")
	f("a b", "id: must not contain spaces")
	f("a\x00b", "id: must not contain a zero byte")
	f("a b\x00", "id: must not contain a zero byte", "id: must not contain spaces")
	f(strings.Repeat("x", 513), "id: must be at most 512 bytes long, not 513")
}

func TestValidateTakesAJobThatIsNotCanonical(t *testing.T) {
	j := &Job{TaskGroups: []*TaskGroup{{
		RestartPolicy: &RestartPolicy{}, ReschedulePolicy: &ReschedulePolicy{}, Update: &UpdateStrategy{},
		Migrate: &MigrateStrategy{}, Tasks: []*Task{{RestartPolicy: &RestartPolicy{}, Resources: &Resources{}}},
	}}}
	err := j.Validate().Err()
	if err == nil || CodeOf(err) != CodeBadRequest {
		t.Errorf("have %v", err)
	}
}

func TestWarnings(t *testing.T) {
	f := func(j *Job, want ...string) {
		t.Helper()
		got := j.Warnings()
		if len(got) == 0 && len(want) == 0 {
			return
		}
		for i := range want {
			if strings.HasSuffix(want[i], ":") {
				want[i] += " is accepted but has no effect yet"
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("have %q, want %q", got, want)
		}
	}
	f(oneTask(t, "", "", ""))
	f(oneTask(t, `,"Type":"batch","Periodic":{"Spec":"* * * * *"}`, "", `,"Vault":{}`),
		`job "j": periodic: is accepted, but the job will not run: there are no periodic jobs yet`, `job "j" > group "g" > task "t": vault:`)
	f(oneTask(t, `,"Type":"batch","ParameterizedJob":{}`, "", ""),
		`job "j": parameterized: is accepted, but the job will not run: there are no parameterized jobs yet`)
	f(oneTask(t, "", `,"Volumes":{"d":{"Name":"d","Type":"host","Source":"data"}}`, `,"VolumeMounts":[{"Volume":"d","Destination":"/d"}]`),
		`job "j" > group "g": volume: is accepted: the group is placed only on nodes that have such a volume, but it is not mounted yet`,
		`job "j" > group "g" > task "t": volume_mount:`)
	f(oneTask(t, "", `,"Update":{"Canary":1}`, ""), `job "j" > group "g" > update: canary:`)
	f(oneTask(t, `,"Type":"system"`, `,"Update":{"Canary":25}`, ""), `job "j" > group "g" > update: canary:`)
	f(oneTask(t, "", `,"Update":{"Stagger":30000000000,"ProgressDeadline":600000000000}`, "")) // the defaults, which Nomad's clients fill in
	f(oneTask(t, "", `,"Update":{"Stagger":0,"ProgressDeadline":0}`, ""))
	f(oneTask(t, "", `,"Update":{"Stagger":1000000000,"ProgressDeadline":3600000000000}`, ""),
		`job "j" > group "g" > update: stagger:`, `job "j" > group "g" > update: progress_deadline:`)
}

func TestNoWarningOfAnyPolicy(t *testing.T) {
	for _, policy := range append(Policies(), "") {
		if got := (&Job{ID: "j", Policy: policy}).Warnings(); len(got) != 0 {
			t.Errorf("%q: %q", policy, got)
		}
	}
}

func TestWarningTableNamesFields(t *testing.T) {
	known := map[string]bool{}
	var add func(reflect.Type)
	add = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || known[typ.Name()] {
			return
		}
		known[typ.Name()] = true
		for _, f := range Fields(typ) {
			known[typ.Name()+"."+f.Name] = true
			add(f.Type)
		}
	}
	add(reflect.TypeFor[Job]())
	for row := range noBehaviour() {
		if !known[row] {
			t.Errorf("%s is no field of a job", row)
		}
	}
}

// fillAll sets every field to something.
func fillAll(v reflect.Value) {
	// the others hold nothing of interest here.
	//exhaustive:ignore
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillAll(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fillAll(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillAll(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		elem := reflect.New(v.Type().Elem()).Elem()
		fillAll(elem)
		v.SetMapIndex(reflect.ValueOf("key"), elem)
	case reflect.Interface:
		v.Set(reflect.ValueOf(map[string]any{"s": "x", "l": []any{int64(1), nil}}))
	case reflect.String:
		v.SetString("some")
	case reflect.Bool:
		v.SetBool(true)
	default:
		switch {
		case v.CanInt():
			v.SetInt(7)
		case v.CanUint():
			v.SetUint(7)
		}
	}
}

// scribble changes everything that v refers to.
func scribble(v reflect.Value) {
	// the others hold nothing of interest here.
	//exhaustive:ignore
	switch v.Kind() {
	case reflect.Pointer:
		scribble(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			scribble(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			scribble(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if in := v.MapIndex(key); in.Kind() == reflect.Pointer {
				scribble(in)
			}
			v.SetMapIndex(key, reflect.Value{})
		}
	case reflect.Interface:
		if inner, ok := v.Interface().(map[string]any); ok {
			clear(inner)
		}
	case reflect.String:
		v.SetString("other")
	case reflect.Bool:
		v.SetBool(false)
	default:
		switch {
		case v.CanInt():
			v.SetInt(9)
		case v.CanUint():
			v.SetUint(9)
		}
	}
}

func TestCopySharesNothing(t *testing.T) {
	var j Job
	fillAll(reflect.ValueOf(&j).Elem())
	before, err := json.Marshal(&j)
	if err != nil {
		t.Fatal(err)
	}
	c := j.Copy()
	if !reflect.DeepEqual(c, &j) {
		t.Fatal("the copy differs")
	}
	scribble(reflect.ValueOf(c).Elem())
	after, err := json.Marshal(&j)
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Errorf("changing the copy changed the job:\n%s\n%s", before, after)
	}
	if (*Job)(nil).Copy() != nil {
		t.Error("copy of nil")
	}
}

func TestRequested(t *testing.T) {
	j := jobOf(t, `{"ID":"j","TaskGroups":[{"Name":"g","Tasks":[
		{"Name":"a","Resources":{"CPU":500,"MemoryMB":100,"MemoryMaxMB":400,"Licenses":{"vcs":1}}},
		{"Name":"b","Resources":{"Cores":2,"Licenses":{"vcs":2},"Devices":[{"Name":"gpu"}]}}]}]}`)
	got := j.TaskGroups[0].TotalResources()
	if got.CPU != 500 || got.Cores != 2 || got.MemoryMB != 400 || got.MemoryMaxMB != 700 || got.DiskMB != 300 ||
		got.Licenses["vcs"] != 3 || len(got.Devices) != 1 {
		t.Errorf("have %+v", got)
	}
}

func TestNearest(t *testing.T) {
	known := []string{"count", "constraint", "driver", "kill_timeout", "memory", "server_join", "servers"}
	f := func(word, want string) {
		t.Helper()
		if got := Nearest(word, known); got != want {
			t.Errorf("%s: have %q, want %q", word, got, want)
		}
	}
	f("cuont", "count")
	f("constraints", "constraint")
	f("kill-timeout", "kill_timeout")
	f("Driver", "driver")
	f("mem", "memory")
	f("server", "servers")
	f("server_jo", "server_join")
	f("wibble", "")
	f("", "")
	f(strings.Repeat("x", 10_000), "")
}

// TestLogsAgainstDisk: each task's logs must fit the group's disk, not all of them together.
func TestLogsAgainstDisk(t *testing.T) {
	j := oneTask(t, "", "", "")
	for _, name := range []string{"u", "v"} {
		more := j.TaskGroups[0].Tasks[0].Copy()
		more.Name = name
		j.TaskGroups[0].Tasks = append(j.TaskGroups[0].Tasks, more)
	}
	j.Canonicalize()
	if found := j.Validate(); len(found) > 0 {
		t.Errorf("three tasks with default logs are refused: %v", found)
	}
	j.TaskGroups[0].Tasks[1].LogConfig.MaxFiles = 30
	if found := j.Validate(); len(found) != 1 || !strings.Contains(found[0].String(), `task "u"`) {
		t.Errorf("logs of 300 MB on a disk of 300 MB: %v", found)
	}
}
