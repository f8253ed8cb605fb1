package structs

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// maxNameLength bounds IDs and names, in bytes.
const maxNameLength = 512

// Validate returns everything that is wrong with a canonical job. A job with
// problems must not be stored.
func (j *Job) Validate() Problems {
	var list problemList
	r := list.at(ChildPath("", "job", Clip(j.ID, maxNameLength), -1)) // a longer one is refused
	if j.checkCounts(r); len(list.all) > 0 {
		return list.all
	}
	walkSpec(reflect.ValueOf(j).Elem(), &specPath{block: "job", label: j.ID, index: -1}, func(at *specPath, v reflect.Value) {
		checkTags(&list, at, v)
	})
	j.validateHead(r)
	j.validateTargets(r)
	j.validateLaunch(r)
	if len(j.TaskGroups) == 0 {
		r.addf("", "must have a group with a task in it")
	}
	names := make([]string, len(j.TaskGroups))
	for i, g := range j.TaskGroups {
		names[i] = g.Name
		g.validate(r.in("group", g.Name, i), j)
	}
	r.unique("", "groups", names)
	return list.all
}

// checkTags reports values that the check tags of a struct's fields refuse, and those that are nested too deep.
func checkTags(list *problemList, at *specPath, v reflect.Value) {
	for _, f := range specOf(v.Type()).free {
		if DeeperThan(MaxJSONDepth, v.FieldByIndex(f.Index).Interface()) {
			list.at(at.path()).addf(cmp.Or(f.HCL, f.Name), "must have at most %d lists and objects within each other", MaxJSONDepth)
		}
	}
	for _, f := range specOf(v.Type()).checked {
		value := v.FieldByIndex(f.Index)
		if f.hasMin && f.min > 0 && value.CanInt() && (value.IsZero() || value.Int() == shareOfNothing) {
			continue // zero is "not stated"; what it must not be is checked by hand
		}
		if problem := f.Check(value); problem != "" {
			list.at(at.path()).addf(cmp.Or(f.HCL, f.Name), "%s", problem)
		}
	}
}

func (j *Job) validateHead(r reporter) {
	checkText(r, "id", j.ID)
	if strings.Contains(j.ID, " ") {
		r.addf("id", "must not contain spaces")
	}
	checkText(r, "name", j.Name)
	if !isWord(j.Namespace, false) {
		r.addf("namespace", "must be 1 to 128 letters, digits or dashes, not %q", clip(j.Namespace))
	}
	if !isWord(j.NodePool, true) {
		r.addf("node_pool", "must be 1 to 128 letters, digits, dashes or underscores, not %q", clip(j.NodePool))
	}
	if !isWord(j.Region, true) {
		r.addf("region", "must be 1 to 128 letters, digits, dashes or underscores, not %q", clip(j.Region))
	}
	if j.Type == "" {
		r.addf("type", `must be "service", "batch", "system" or "sysbatch"`)
	}
	if j.Priority == 0 {
		r.addf("priority", "must be between %d and %d, not 0", JobMinPriority, JobMaxPriority)
	}
	if len(j.Datacenters) == 0 && j.Multiregion == nil {
		r.addf("datacenters", `must name at least one datacenter; ["*"] means all`)
	}
	if slices.Contains(j.Datacenters, "") {
		r.addf("datacenters", `must not hold an empty name; "*" means all`)
	}
	if j.Project == "" && (j.Step != "" || j.Slot != "") {
		r.addf("project", "is required, as the job states a step or a slot type: project = \"NAME\"")
	}
	if j.Type == JobTypeSystem && j.Reclaim == ReclaimSuspend {
		r.addf("reclaim", "a system job runs on every fitting node beside what others own, and is not suspended; leave it out")
	}
	for _, dimension := range j.Prefer {
		if known := Dimensions(); !slices.Contains(known, dimension) {
			r.addf("prefer", "must list dimensions, which are %s, not %q%s", orList(known), clip(dimension), didYouMean(dimension, known))
		}
	}
	r.unique("prefer", "dimensions", j.Prefer)
	checkKeys(r, "meta", j.Meta)
}

// checkText reports an ID or a name by which nothing could be distinguished. As in Nomad it may hold control characters: whoever
// shows it escapes them.
func checkText(r reporter, field, text string) {
	switch {
	case text == "":
		r.addf(field, "must not be empty")
	case checkLength(r, field, text):
	case strings.ContainsRune(text, 0):
		r.addf(field, "must not contain a zero byte")
	}
}

// checkName reports names that could not be put into a path.
func checkName(r reporter, field, name string) {
	switch {
	case name == "":
		r.addf(field, "must not be empty")
	case checkLength(r, field, name):
	case strings.ContainsFunc(name, unicode.IsControl):
		r.addf(field, "must not contain control characters")
	}
}

// checkLength reports a name that is too long, and whether it is.
func checkLength(r reporter, field, name string) bool {
	if len(name) > maxNameLength {
		r.addf(field, "must be at most %d bytes long, not %d", maxNameLength, len(name))
		return true
	}
	return false
}

// checkPathName is checkName for what names a directory.
func checkPathName(r reporter, field, name string) {
	checkName(r, field, name)
	if strings.ContainsAny(name, `/\`) || name == "." || name == ".." {
		r.addf(field, "must not contain slashes or be a relative path, it names a directory: %q", clip(name))
	}
}

func checkKeys(r reporter, field string, m map[string]string) {
	for _, key := range sortedKeys(m) {
		if key == "" || strings.ContainsRune(key, 0) {
			r.addf(field, "must not have an empty key, or one with a zero byte")
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// clip shortens what a message quotes.
func clip(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:57], "") + "..."
	}
	return s
}

func (j *Job) validateTargets(r reporter) {
	validateConstraints(r, j.Constraints)
	validateAffinities(r, j.Affinities)
	validateSpreads(r, j.Spreads)
	if j.Type == JobTypeSystem {
		if len(j.Affinities) > 0 {
			r.addf("affinity", "a system job runs on every fitting node, so it cannot prefer some; use constraint")
		}
		if len(j.Spreads) > 0 {
			r.addf("spread", "a system job runs on every fitting node, so there is nothing to spread")
		}
	}
}

// ValidRegion reports whether a region may have a name: one that jobs can state.
func ValidRegion(name string) bool { return isWord(name, true) }

// validateLaunch checks what launches jobs or spans regions.
func (j *Job) validateLaunch(r reporter) {
	runsOut := j.Type == JobTypeBatch || j.Type == JobTypeSysBatch
	if p := j.Periodic; p != nil {
		in := r.in("periodic", "", -1)
		if !runsOut {
			in.addf("", "only batch and sysbatch jobs can be periodic, this one is %q", clip(j.Type))
		}
		p.validate(in)
	}
	if p := j.ParameterizedJob; p != nil {
		in := r.in("parameterized", "", -1)
		if !runsOut {
			in.addf("", "only batch and sysbatch jobs can be parameterized, this one is %q", clip(j.Type))
		}
		for _, key := range p.MetaOptional {
			if slices.Contains(p.MetaRequired, key) {
				in.addf("meta_optional", "must not repeat %q, which meta_required has", clip(key))
			}
		}
		in.unique("meta_required", "keys", p.MetaRequired)
		in.unique("meta_optional", "keys", p.MetaOptional)
	}
	if m := j.Multiregion; m != nil {
		in := r.in("multiregion", "", -1)
		names := make([]string, len(m.Regions))
		for i, region := range m.Regions {
			names[i] = region.Name
		}
		if len(names) == 0 {
			in.addf("region", "must be stated at least once")
		}
		in.unique("region", "regions", names)
		for i, name := range names {
			if !ValidRegion(name) {
				in.in("region", "", i).addf("", "must be named by 1 to 128 letters, digits, dashes or underscores, not %q", clip(name))
			}
		}
	}
	if j.UI != nil {
		for i, link := range j.UI.Links {
			in := r.in("ui", "", -1).in("link", "", i)
			in.need("label", link.Label)
			in.need("url", link.URL)
		}
	}
}

func (p *PeriodicConfig) validate(r reporter) {
	if p.SpecType != PeriodicSpecCron {
		r.addf("SpecType", "must be %q, not %q", PeriodicSpecCron, clip(p.SpecType))
	}
	if p.Spec != "" && len(p.Specs) > 0 {
		r.addf("cron", "must not be stated beside crons")
	}
	if p.Spec == "" && len(p.Specs) == 0 {
		r.addf("cron", `must be stated, such as "*/15 * * * *", or crons`)
	}
	check := func(field, spec string) {
		if problem := checkCron(spec); problem != "" {
			r.addf(field, "%q is no cron expression: %s", clip(spec), problem)
		}
	}
	if p.Spec != "" {
		check("cron", p.Spec)
	}
	for _, spec := range p.Specs {
		check("crons", spec)
	}
}
