package config

import (
	"reflect"
	"slices"
	"strings"
)

// Changed names the settings in which two configurations differ, as files have them, in order: server.encrypt. Values are not
// returned: some are secret.
func Changed(was, now *Config) []string {
	var out []string
	changed(reflect.ValueOf(was).Elem(), reflect.ValueOf(now).Elem(), "", &out)
	slices.Sort(out)
	return out
}

func changed(was, now reflect.Value, path string, out *[]string) {
	for _, f := range fieldsOf(was.Type()) {
		name, kind, _ := strings.Cut(f.Tag.Get("hcl"), ",")
		if name == "" || !f.IsExported() || strings.HasPrefix(kind, "label") {
			continue
		}
		a, b := was.FieldByIndex(f.Index), now.FieldByIndex(f.Index)
		if f.Type.Kind() == reflect.Struct {
			changed(a, b, path+name+".", out)
			continue
		}
		if empty := (f.Type.Kind() == reflect.Map || f.Type.Kind() == reflect.Slice) && a.Len() == 0 && b.Len() == 0; empty {
			continue
		}
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			*out = append(*out, path+name)
		}
	}
}
