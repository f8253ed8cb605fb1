package structs

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// What a diff states about a thing.
const (
	DiffTypeNone    = "None"
	DiffTypeAdded   = "Added"
	DiffTypeDeleted = "Deleted"
	DiffTypeEdited  = "Edited"
)

// What a change does, as annotations of a diff state it.
const (
	AnnotationForcesCreate            = "forces create"
	AnnotationForcesDestroy           = "forces destroy"
	AnnotationForcesInplaceUpdate     = "forces in-place update"
	AnnotationForcesDestructiveUpdate = "forces create/destroy update"
)

// What happens to a group's instances, as TaskGroupDiff.Updates counts it.
const (
	UpdateTypeIgnore            = "ignore"
	UpdateTypeCreate            = "create"
	UpdateTypeDestroy           = "destroy"
	UpdateTypeMigrate           = "migrate"
	UpdateTypeCanary            = "canary"
	UpdateTypeInplaceUpdate     = "in-place update"
	UpdateTypeDestructiveUpdate = "create/destroy update"
)

// JobDiff is what differs between two versions of a job.
type JobDiff struct {
	Type       string // one of the DiffType constants, here and below
	ID         string
	Fields     []*FieldDiff
	Objects    []*ObjectDiff
	TaskGroups []*TaskGroupDiff
}

// TaskGroupDiff is what differs of a group.
type TaskGroupDiff struct {
	Type    string
	Name    string
	Fields  []*FieldDiff
	Objects []*ObjectDiff
	Tasks   []*TaskDiff
	Updates map[string]uint64 // by UpdateType, filled by Annotate
}

// TaskDiff is what differs of a task.
type TaskDiff struct {
	Type        string
	Name        string
	Fields      []*FieldDiff
	Objects     []*ObjectDiff
	Annotations []string
}

// ObjectDiff is what differs of a block.
type ObjectDiff struct {
	Type    string
	Name    string
	Fields  []*FieldDiff
	Objects []*ObjectDiff
}

// FieldDiff is a value that differs. Durations are in nanoseconds.
type FieldDiff struct {
	Type        string
	Name        string
	Old, New    string
	Annotations []string
}

// jobServerFields are fields of a job that its author does not state, or that a
// canonical job has merged into its groups: no part of a diff.
var jobServerFields = map[string]bool{
	"ID": true, "Submission": true, "Status": true, "StatusDescription": true, "Stable": true, "Version": true, "VersionTag": true,
	"SubmitTime": true, "CreateIndex": true, "ModifyIndex": true, "JobModifyIndex": true, "NomadTokenID": true,
	"DispatchIdempotencyToken": true, "Payload": true, "TaskGroups": true,
	"Update": true, "Reschedule": true, "Migrate": true,
}

var (
	groupOwnFields = map[string]bool{"Name": true, "Tasks": true}
	taskOwnFields  = map[string]bool{"Name": true}
)

// Diff returns how other differs from j. Either may be nil: the job is then added or deleted. With
// contextual, the unchanged fields of a changed block are listed too. Both must be canonical.
func (j *Job) Diff(other *Job, contextual bool) *JobDiff {
	d := differ{contextual: contextual}
	out := &JobDiff{Type: DiffTypeNone}
	switch {
	case j == nil && other == nil:
		return out
	case j == nil:
		out.ID = other.ID
	default:
		out.ID = j.ID
	}
	a, b := structOf(j), structOf(other)
	out.Fields, out.Objects = d.structFields(a, b, jobServerFields, false)
	var oldGroups, newGroups []*TaskGroup
	if j != nil {
		oldGroups = j.TaskGroups
	}
	if other != nil {
		newGroups = other.TaskGroups
	}
	for _, pair := range pairByName(oldGroups, newGroups, func(g *TaskGroup) string { return g.Name }) {
		out.TaskGroups = append(out.TaskGroups, d.group(pair.old, pair.new, pair.name))
	}
	changed := len(out.Fields)+len(out.Objects) > 0 ||
		slices.ContainsFunc(out.TaskGroups, func(g *TaskGroupDiff) bool { return g.Type != DiffTypeNone })
	out.Type = diffType(a.IsValid(), b.IsValid(), changed)
	return out
}

type differ struct{ contextual bool }

func structOf[T any](p *T) reflect.Value {
	if p == nil {
		return reflect.Value{}
	}
	return reflect.ValueOf(p).Elem()
}

func diffType(hasOld, hasNew, changed bool) string {
	switch {
	case hasOld && !hasNew:
		return DiffTypeDeleted
	case hasNew && !hasOld:
		return DiffTypeAdded
	case changed:
		return DiffTypeEdited
	}
	return DiffTypeNone
}

type pair[T any] struct {
	name     string
	old, new *T
}

// pairByName pairs what has the same name, in the order of names.
func pairByName[T any](olds, news []*T, name func(*T) string) []pair[T] {
	byName := map[string]*pair[T]{}
	of := func(item *T) *pair[T] {
		n := name(item)
		if byName[n] == nil {
			byName[n] = &pair[T]{name: n}
		}
		return byName[n]
	}
	for _, item := range olds {
		of(item).old = item
	}
	for _, item := range news {
		of(item).new = item
	}
	out := make([]pair[T], 0, len(byName))
	for _, p := range byName {
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b pair[T]) int { return cmp.Compare(a.name, b.name) })
	return out
}

func (d differ) group(old, new *TaskGroup, name string) *TaskGroupDiff {
	a, b := structOf(old), structOf(new)
	out := &TaskGroupDiff{Name: name}
	out.Fields, out.Objects = d.structFields(a, b, groupOwnFields, false)
	var oldTasks, newTasks []*Task
	if old != nil {
		oldTasks = old.Tasks
	}
	if new != nil {
		newTasks = new.Tasks
	}
	changed := len(out.Fields)+len(out.Objects) > 0
	for _, pair := range pairByName(oldTasks, newTasks, func(t *Task) string { return t.Name }) {
		task := d.task(pair.old, pair.new, pair.name)
		changed = changed || task.Type != DiffTypeNone
		out.Tasks = append(out.Tasks, task)
	}
	out.Type = diffType(old != nil, new != nil, changed)
	return out
}

func (d differ) task(old, new *Task, name string) *TaskDiff {
	a, b := structOf(old), structOf(new)
	out := &TaskDiff{Name: name}
	out.Fields, out.Objects = d.structFields(a, b, taskOwnFields, false)
	out.Type = diffType(old != nil, new != nil, len(out.Fields)+len(out.Objects) > 0)
	return out
}

// structFields compares two structs of one type, either of which may be absent.
func (d differ) structFields(a, b reflect.Value, skip map[string]bool, listNone bool) ([]*FieldDiff, []*ObjectDiff) {
	one := a
	if !one.IsValid() {
		one = b
	}
	if !one.IsValid() {
		return nil, nil
	}
	flatOld, flatNew := map[string]string{}, map[string]string{}
	var objects []*ObjectDiff
	for _, f := range Fields(one.Type()) {
		if skip[f.Name] {
			continue
		}
		var fa, fb reflect.Value
		if a.IsValid() {
			fa = a.FieldByIndex(f.Index)
		}
		if b.IsValid() {
			fb = b.FieldByIndex(f.Index)
		}
		switch formOf(f.Type) {
		case formInline:
			flatten(f.Name, fa, flatOld)
			flatten(f.Name, fb, flatNew)
		case formFree:
			objects = appendObject(objects, d.freeObject(f.Name, fa, fb))
		case formStrings:
			objects = appendObject(objects, stringsObject(f.Name, fa, fb))
		case formObject:
			objects = appendObject(objects, d.object(objectName(f.Name), deref(fa), deref(fb)))
		case formObjects:
			objects = append(objects, d.objects(objectName(f.Name), fa, fb)...)
		}
	}
	slices.SortStableFunc(objects, func(x, y *ObjectDiff) int { return cmp.Compare(x.Name, y.Name) })
	return flatDiff(flatOld, flatNew, listNone), objects
}

func appendObject(list []*ObjectDiff, o *ObjectDiff) []*ObjectDiff {
	if o == nil || o.Type == DiffTypeNone {
		return list
	}
	return append(list, o)
}

// object compares a block; nil if neither side has it.
func (d differ) object(name string, a, b reflect.Value) *ObjectDiff {
	if !a.IsValid() && !b.IsValid() {
		return nil
	}
	out := &ObjectDiff{Name: name}
	out.Fields, out.Objects = d.structFields(a, b, nil, false)
	out.Type = diffType(a.IsValid(), b.IsValid(), len(out.Fields)+len(out.Objects) > 0)
	if out.Type == DiffTypeEdited && d.contextual {
		out.Fields, _ = d.structFields(a, b, nil, true)
	}
	return out
}

// objects compares repeated blocks. Those with a name are paired by it; of the
// others, those that are equal cancel out. If one is left on each side, it was
// edited; otherwise they are deleted and added.
func (d differ) objects(name string, a, b reflect.Value) []*ObjectDiff {
	var out []*ObjectDiff
	var gone []element
	left := elements(b)
	for _, old := range elements(a) {
		match := slices.IndexFunc(left, func(n element) bool {
			return n.key == old.key && (n.key != "" || sameValue(old.value, n.value))
		})
		if match < 0 {
			gone = append(gone, old)
			continue
		}
		out = appendObject(out, d.object(name, old.value, left[match].value))
		left = slices.Delete(left, match, match+1)
	}
	if len(gone) == 1 && len(left) == 1 && gone[0].key == left[0].key {
		return appendObject(out, d.object(name, gone[0].value, left[0].value))
	}
	for _, old := range gone {
		out = appendObject(out, d.object(name, old.value, reflect.Value{}))
	}
	for _, n := range left {
		out = appendObject(out, d.object(name, reflect.Value{}, n.value))
	}
	return out
}

type element struct {
	key   string
	value reflect.Value // a struct
}

// elements returns the structs of a list, or of a map in the order of its keys.
func elements(v reflect.Value) []element {
	if !v.IsValid() {
		return nil
	}
	var out []element
	if v.Kind() == reflect.Map {
		for it := v.MapRange(); it.Next(); {
			out = append(out, element{it.Key().String(), deref(it.Value())})
		}
		slices.SortFunc(out, func(a, b element) int { return cmp.Compare(a.key, b.key) })
		return out
	}
	for i := range v.Len() {
		s := deref(v.Index(i))
		out = append(out, element{nameOf(s), s})
	}
	return out
}

// nameOf returns a block's label, or the name that it has instead.
func nameOf(s reflect.Value) string {
	for _, f := range Fields(s.Type()) {
		if f.Kind == FieldLabel || (f.Name == "Name" && f.Type.Kind() == reflect.String) {
			return s.FieldByIndex(f.Index).String()
		}
	}
	return ""
}

func deref(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		v = v.Elem()
	}
	return v
}

// objectName is what Nomad calls the objects of a field.
func objectName(field string) string {
	switch field {
	case "ReservedPorts":
		return "Static Port"
	case "DynamicPorts":
		return "Dynamic Port"
	case "Affinities", "Identities", "ScalingPolicies":
		return strings.TrimSuffix(field, "ies") + "y"
	case "DNS", "Weights", "Resources":
		return field
	}
	return strings.TrimSuffix(field, "s")
}

type form int

const (
	formInline  form = iota // values, and maps of them, beside their neighbours
	formFree                // free-form configuration
	formStrings             // a list of values
	formObject              // a block
	formObjects             // repeated blocks
)

func formOf(t reflect.Type) form {
	elem := func(t reflect.Type) reflect.Type {
		if t.Kind() == reflect.Pointer {
			return t.Elem()
		}
		return t
	}
	// the others hold nothing of interest here.
	//exhaustive:ignore
	switch t.Kind() {
	case reflect.Pointer, reflect.Struct:
		if elem(t).Kind() == reflect.Struct {
			return formObject
		}
	case reflect.Slice:
		if elem(t.Elem()).Kind() == reflect.Struct {
			return formObjects
		}
		return formStrings
	case reflect.Map:
		// the others hold nothing of interest here.
		//exhaustive:ignore
		switch elem(t.Elem()).Kind() {
		case reflect.Struct:
			return formObjects
		case reflect.Interface, reflect.Slice:
			return formFree
		}
	}
	return formInline
}

// flatten writes a value into a flat map: name, name[key], name[0]…
func flatten(name string, v reflect.Value, into map[string]string) {
	v = deref(v)
	if !v.IsValid() {
		return
	}
	// the others hold nothing of interest here.
	//exhaustive:ignore
	switch v.Kind() {
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			flatten(name+"["+it.Key().String()+"]", it.Value(), into)
		}
	case reflect.Slice:
		for i := range v.Len() {
			flatten(name+"["+strconv.Itoa(i)+"]", v.Index(i), into)
		}
	case reflect.String:
		into[name] = v.String()
	case reflect.Bool:
		into[name] = strconv.FormatBool(v.Bool())
	default:
		switch {
		case v.CanInt():
			into[name] = strconv.FormatInt(v.Int(), 10)
		case v.CanUint():
			into[name] = strconv.FormatUint(v.Uint(), 10)
		case v.CanFloat():
			into[name] = strconv.FormatFloat(v.Float(), 'f', -1, 64)
		}
	}
}

func flatDiff(old, new map[string]string, listNone bool) []*FieldDiff {
	names := make([]string, 0, len(old)+len(new))
	for n := range old {
		names = append(names, n)
	}
	for n := range new {
		if _, ok := old[n]; !ok {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	var out []*FieldDiff
	for _, n := range names {
		was, hadOld := old[n]
		is, hasNew := new[n]
		f := &FieldDiff{Name: n, Old: was, New: is}
		switch {
		case was == is && !listNone:
			continue // also an absent value beside an empty one
		case was == is:
			f.Type = DiffTypeNone
		case !hadOld || was == "":
			f.Type = DiffTypeAdded
		case !hasNew || is == "":
			f.Type = DiffTypeDeleted
		default:
			f.Type = DiffTypeEdited
		}
		out = append(out, f)
	}
	return out
}

// freeObject compares free-form configuration.
func (d differ) freeObject(name string, a, b reflect.Value) *ObjectDiff {
	old, new := map[string]string{}, map[string]string{}
	hasOld, hasNew := a.IsValid() && a.Len() > 0, b.IsValid() && b.Len() > 0
	if hasOld {
		flattenInside(a, old)
	}
	if hasNew {
		flattenInside(b, new)
	}
	fields := flatDiff(old, new, false)
	out := &ObjectDiff{Name: name, Type: diffType(hasOld, hasNew, len(fields) > 0), Fields: fields}
	if out.Type == DiffTypeEdited && d.contextual {
		out.Fields = flatDiff(old, new, true)
	}
	return out
}

func flattenInside(v reflect.Value, into map[string]string) {
	for it := v.MapRange(); it.Next(); {
		flatten(it.Key().String(), it.Value(), into)
	}
}

// stringsObject compares lists of values: what is new and what is gone; where
// only the order differs, place by place.
func stringsObject(name string, a, b reflect.Value) *ObjectDiff {
	list := func(v reflect.Value) (out []string) {
		for i := range lenOf(v) {
			flat := map[string]string{}
			flatten("", v.Index(i), flat)
			out = append(out, flat[""])
		}
		return out
	}
	old, new := list(a), list(b)
	out := &ObjectDiff{Name: name, Type: DiffTypeNone}
	if slices.Equal(old, new) {
		return out
	}
	out.Type = diffType(len(old) > 0, len(new) > 0, true)
	for _, o := range old {
		if !slices.Contains(new, o) {
			out.Fields = append(out.Fields, &FieldDiff{Type: DiffTypeDeleted, Name: name, Old: o})
		}
	}
	for _, n := range new {
		if !slices.Contains(old, n) {
			out.Fields = append(out.Fields, &FieldDiff{Type: DiffTypeAdded, Name: name, New: n})
		}
	}
	if len(out.Fields) == 0 {
		flatOld, flatNew := map[string]string{}, map[string]string{}
		flatten(name, a, flatOld)
		flatten(name, b, flatNew)
		out.Fields = flatDiff(flatOld, flatNew, false)
	}
	return out
}

func lenOf(v reflect.Value) int {
	if !v.IsValid() {
		return 0
	}
	return v.Len()
}
