package fields

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"
)

// coverage specifies which fields of the answers were filled. An answer type is covered
// by all the answers of it together: no single allocation is at once rescheduled,
// moved and running.
type coverage struct {
	// roots: answer type → "Type.Field" → whether any answer had it filled.
	roots map[string]map[string]bool
	// started: nothing told of is older.
	started time.Time
	// wrong is what cannot be true whatever the situation.
	wrong map[string]bool
}

func newCoverage() *coverage {
	return &coverage{roots: map[string]map[string]bool{}, started: time.Now(), wrong: map[string]bool{}}
}

// see walks an answer. root names what it was an answer to.
func (c *coverage) see(root string, answer any) {
	fields := c.roots[root]
	if fields == nil {
		fields = map[string]bool{}
		c.roots[root] = fields
	}
	c.walk(reflect.ValueOf(answer), root, fields)
}

// apart are the types that are walked under their own root only: a job within an
// allocation is compared with the job instead.
var apart = map[reflect.Type]string{reflect.TypeFor[nomad.Job](): "Job"}

// leaf are structs that are one value.
var leaf = map[reflect.Type]bool{reflect.TypeFor[time.Time](): true}

func (c *coverage) walk(v reflect.Value, root string, fields map[string]bool) {
	// the others hold no fields.
	//exhaustive:ignore
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			c.walk(v.Elem(), root, fields)
		}
	case reflect.Slice:
		for i := range v.Len() {
			c.walk(v.Index(i), root, fields)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			c.walk(v.MapIndex(key), root, fields)
		}
	case reflect.Struct:
		if own := apart[v.Type()]; leaf[v.Type()] || own != "" && own != root {
			return
		}
		for _, f := range reflect.VisibleFields(v.Type()) {
			if len(f.Index) > 1 || !f.IsExported() || f.Tag.Get("json") == "-" {
				continue // an embedded struct is walked as the field that it is
			}
			value := v.FieldByIndex(f.Index)
			if !f.Anonymous {
				key := cmp.Or(v.Type().Name(), root) + "." + f.Name
				fields[key] = fields[key] || isFilled(value)
				c.believable(key, value)
			}
			c.walk(value, root, fields)
		}
	}
}

// older are times that may lie before the test, or are of another clock's unit.
var older = map[string]bool{"ScalingEvent.Time": true, "Node.StatusUpdatedAt": true, "JobVersionTag.TaggedTime": true}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// believable notes what cannot be true: a time before the test or long after it, an
// ID that is none.
func (c *coverage) believable(key string, v reflect.Value) {
	if !isFilled(v) {
		return
	}
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	_, field, _ := strings.Cut(key, ".")
	var at time.Time
	switch value := v.Interface().(type) {
	case time.Time:
		at = value
	case int64:
		if strings.HasSuffix(field, "Time") || field == "Timestamp" {
			at = time.Unix(0, value)
		}
	case string:
		switch field {
		case "NodeID", "EvalID", "PrevAllocID", "PrevNodeID", "BlockedEval", "PreviousEval", "NextEval", "NextAllocation", "PreviousAllocation", "FollowupEvalID":
			if !uuid.MatchString(value) {
				c.wrong[fmt.Sprintf("%s is %q, no ID", key, value)] = true
			}
		}
	}
	latest := time.Now().Add(2 * time.Minute)
	if field == "WaitUntil" { // what waits for room may reserve it then: reservation_after
		latest = time.Now().Add(5*time.Minute + time.Second)
	}
	if !at.IsZero() && !older[key] && (at.Before(c.started.Add(-time.Second)) || at.After(latest)) {
		c.wrong[fmt.Sprintf("%s is %s; the test began at %s", key, at, c.started)] = true
	}
}

// isFilled reports whether a field holds something: a pointer to zero does, an empty
// list does not.
func isFilled(v reflect.Value) bool {
	// the others are filled when they are not zero.
	//exhaustive:ignore
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() > 0
	case reflect.Struct:
		if t, ok := v.Interface().(time.Time); ok {
			return !t.IsZero()
		}
	}
	return !v.IsZero()
}

// exemption is a reason why fields are empty.
type exemption struct {
	reason string
	// fields: "Type.Field" in every answer type, or "Root/Type.Field" in one.
	fields string
}

// check compares what was filled with what is exempt: an empty field needs a
// reason, and a reason needs an empty field.
func (c *coverage) check(t *testing.T, exempt []exemption) {
	t.Helper()
	for _, what := range slices.Sorted(maps.Keys(c.wrong)) {
		t.Error(what)
	}
	reasons := map[string]string{}
	for _, e := range exempt {
		for name := range strings.FieldsSeq(e.fields) {
			if reasons[name] != "" {
				t.Errorf("%s is exempt twice", name)
			}
			reasons[name] = e.reason
		}
	}
	used := map[string]bool{}
	for _, root := range slices.Sorted(maps.Keys(c.roots)) {
		for _, field := range slices.Sorted(maps.Keys(c.roots[root])) {
			filled, own := c.roots[root][field], root+"/"+field
			name := field
			if reasons[own] != "" {
				name = own
			}
			used[name] = true
			switch reason := reasons[name]; {
			case filled && reason != "":
				t.Errorf("%s in %s is exempt (%q), but filled", name, root, reason)
			case !filled && reason == "":
				t.Errorf("%s in %s is empty in every answer", field, root)
			}
		}
	}
	for name := range reasons {
		if !used[name] {
			t.Errorf("%s is exempt, but no answer has such a field", name)
		}
	}
}

// same reports what was asked and is answered otherwise. What was not asked may be
// filled by the server.
func same(requested, got any) []string {
	var out []string
	compare(reflect.ValueOf(requested), reflect.ValueOf(got), reflect.TypeOf(requested).Elem().Name(), &out)
	return out
}

func compare(requested, got reflect.Value, path string, out *[]string) {
	if !isFilled(requested) {
		return
	}
	if !got.IsValid() || !isFilled(got) {
		*out = append(*out, fmt.Sprintf("%s: asked %v, answered nothing", path, show(requested)))
		return
	}
	// the others are one value.
	//exhaustive:ignore
	switch requested.Kind() {
	case reflect.Pointer:
		compare(requested.Elem(), got.Elem(), path, out)
	case reflect.Slice:
		if requested.Len() != got.Len() {
			*out = append(*out, fmt.Sprintf("%s: asked %d, answered %d", path, requested.Len(), got.Len()))
			return
		}
		for i := range requested.Len() {
			compare(requested.Index(i), got.Index(i), fmt.Sprintf("%s[%d]", path, i), out)
		}
	case reflect.Map:
		for _, key := range requested.MapKeys() {
			compare(requested.MapIndex(key), got.MapIndex(key), fmt.Sprintf("%s[%v]", path, key), out)
		}
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(requested.Type()) {
			if f.IsExported() && len(f.Index) == 1 {
				compare(requested.FieldByIndex(f.Index), got.FieldByIndex(f.Index), path+"."+f.Name, out)
			}
		}
	default:
		for requested.Kind() == reflect.Interface {
			requested = requested.Elem()
		}
		// A number of a task's config comes back as JSON's, a float.
		if a, b := requested.Interface(), got.Interface(); fmt.Sprint(a) != fmt.Sprint(b) {
			*out = append(*out, fmt.Sprintf("%s: asked %v, answered %v", path, a, b))
		}
	}
}

func show(v reflect.Value) any {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v.Interface()
}
