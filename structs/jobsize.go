package structs

import (
	"reflect"
	"sync"
)

// Limits of one job. They are far above what people write, and below what would hold up the servers. They hold for what is
// registered, planned, validated or parsed; a job that the state holds already is not measured again.
//
// What a job may have altogether is the cluster's own limit: job_max_size.
const (
	// MaxJobGroups bounds the groups of a job. Many instances of one kind are one group with a count.
	MaxJobGroups = 1000
	// MaxGroupTasks bounds the tasks of a group, which all run on one node.
	MaxGroupTasks = 250
	// MaxJobTasks bounds the tasks of all groups together.
	MaxJobTasks = 5000
	// MaxJobMeta bounds the bytes of meta, keys and values, of the job, its groups and its tasks together.
	MaxJobMeta = 1 << 20
)

// CheckSize returns an error of CodeBadRequest if the job has more of something than a job may have, or more than limit bytes
// altogether ([Job.Size]; 0: no limit). It is cheap whatever the job is, and need not be canonical.
func (j *Job) CheckSize(limit int) error {
	var list problemList
	r := list.at(ChildPath("", "job", Clip(j.ID, maxNameLength), -1))
	if j.checkCounts(r); len(list.all) == 0 && limit > 0 {
		if size := j.Size(limit); size > limit {
			r.addf("", "the job has more than %d bytes, which this cluster allows (job_max_size); keep large data out of it, such as in artifacts", limit)
		}
	}
	return list.all.Err()
}

// checkCounts reports what the job has too many of, and names that are too long to be repeated wherever something is reported about
// what they name. Nothing else is worth reporting of such a job.
func (j *Job) checkCounts(r reporter) {
	if checkLength(r, "id", j.ID) || checkLength(r, "name", j.Name) {
		return
	}
	if n := len(j.TaskGroups); n > MaxJobGroups {
		r.addf("group", "must be at most %d groups, not %d; equal ones can be one group with a count", MaxJobGroups, n)
		return
	}
	tasks, meta := 0, bytesOf(j.Meta)
	for i, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		if len(g.Name) > maxNameLength {
			checkLength(r.in("group", "", i), "name", g.Name)
			return
		}
		if n := len(g.Tasks); n > MaxGroupTasks {
			r.in("group", g.Name, i).addf("task", "must be at most %d tasks, not %d", MaxGroupTasks, n)
			return
		}
		tasks += len(g.Tasks)
		meta += bytesOf(g.Meta)
		for k, t := range g.Tasks {
			if t == nil {
				continue
			}
			if len(t.Name) > maxNameLength {
				checkLength(r.in("group", g.Name, i).in("task", "", k), "name", t.Name)
				return
			}
			meta += bytesOf(t.Meta)
		}
	}
	if tasks > MaxJobTasks {
		r.addf("task", "must be at most %d tasks in all groups together, not %d", MaxJobTasks, tasks)
	}
	if meta > MaxJobMeta {
		r.addf("meta", "must be at most %d bytes in the job, its groups and tasks together, not %d", MaxJobMeta, meta)
	}
}

func bytesOf(m map[string]string) int {
	n := 0
	for k, v := range m {
		n += len(k) + len(v)
	}
	return n
}

// What Size counts for what is no text.
const (
	sizeOfValue  = 8  // a number, a truth
	sizeOfObject = 64 // a struct, an element
)

// Size returns about how many bytes the job takes: its text, and a little for each of its parts. It stops counting above most.
func (j *Job) Size(most int) int {
	left := most
	measure(reflect.ValueOf(j), &left)
	return most - left
}

// measure takes the size of a value from what is left.
func measure(v reflect.Value, left *int) {
	if *left < 0 {
		return
	}
	// The others are numbers and truths.
	//exhaustive:ignore
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			measure(v.Elem(), left)
		}
	case reflect.String:
		*left -= v.Len()
	case reflect.Struct:
		for _, i := range variableFields(v.Type()) {
			measure(v.Field(i), left)
		}
		*left -= sizeOfObject
	case reflect.Slice:
		*left -= v.Len()
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := 0; i < v.Len() && *left >= 0; i++ {
			measure(v.Index(i), left)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next() && *left >= 0; { // order does not matter: it is a sum, and stops above the limit either way
			measure(it.Key(), left)
			measure(it.Value(), left)
		}
	default:
		*left -= sizeOfValue
	}
}

var variableCache sync.Map // reflect.Type → []int

// variableFields are the fields of a struct type whose size depends on what is in them.
func variableFields(t reflect.Type) []int {
	if known, ok := variableCache.Load(t); ok {
		return known.([]int) // nothing else is put there
	}
	var fields []int
	for i := range t.NumField() {
		// The others have one size.
		//exhaustive:ignore
		switch t.Field(i).Type.Kind() {
		case reflect.Pointer, reflect.Interface, reflect.String, reflect.Struct, reflect.Slice, reflect.Map:
			fields = append(fields, i)
		}
	}
	variableCache.Store(t, fields)
	return fields
}
