package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Setting is a name of the configuration that is accepted and has no effect.
type Setting struct {
	Block string // that it stands in, as "server.search"; empty: none
	Name  string
	Moot  bool // what it requests is always so, and there is no warning
}

// SettingsWithoutEffect returns the settings that are accepted and have no effect, by their blocks and, in each, by their names.
// It reads the tags that files are decoded by.
func SettingsWithoutEffect() []Setting {
	var out []Setting
	listSettings(reflect.TypeFor[Config](), "", &out)
	for _, name := range slices.Sorted(maps.Keys(pluginConfigs)) {
		if t := pluginConfigs[name]; t != nil {
			listSettings(t, "plugin."+name+".config", &out)
		}
	}
	slices.SortStableFunc(out, func(a, b Setting) int { return strings.Compare(a.Block, b.Block) })
	return out
}

func listSettings(t reflect.Type, block string, out *[]Setting) {
	s := schemaOf(t)
	for _, name := range s.names {
		switch f, known := s.fields[name]; {
		case !known:
			*out = append(*out, Setting{block, name, s.moot[name]})
		case f.later:
			*out = append(*out, Setting{block, name, false})
		default:
			if in := blockType(t.FieldByIndex(f.index).Type); in != nil {
				listSettings(in, child(block, name), out)
			}
		}
	}
}

// blockType is the struct that a field of a type holds; nil: it holds values.
func blockType(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	return t
}

// PluginsWithoutEffect returns the names of Nomad's plugins of which a configuration is accepted and has no effect.
func PluginsWithoutEffect() []string { return slices.Clone(inertPlugins) }
