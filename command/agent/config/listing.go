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

// Block is a block of the configuration, as its page of reference lists it.
type Block struct {
	Path     string // with dots, as "server.topology"; empty: the top level
	Labelled bool   // it has a label, and may be stated several times
	Type     reflect.Type
	Settings []BlockSetting // in the order of their declaration; those without a field come first
}

// BlockSetting is a setting, or a block, within a block.
type BlockSetting struct {
	Name  string
	Index []int // of its field in the block's type; nil: it has no effect and none is needed, or its effect is still missing
	Type  reflect.Type
	Block bool // it is a block
	Later bool // accepted, without effect yet
	Moot  bool // accepted; what it requests is always so
}

// Blocks returns all blocks, outer ones before inner ones, and the config blocks of plugins at last. It reads the tags that files are decoded by.
func Blocks() []Block {
	var out []Block
	listBlocks(reflect.TypeFor[Config](), "", &out)
	for _, name := range slices.Sorted(maps.Keys(pluginConfigs)) {
		if t := pluginConfigs[name]; t != nil {
			listBlocks(t, `plugin.`+name+".config", &out)
		}
	}
	return out
}

func listBlocks(t reflect.Type, path string, out *[]Block) {
	s := schemaOf(t)
	b := Block{Path: path, Type: t, Labelled: s.label != nil}
	at := len(*out)
	*out = append(*out, b)
	for _, name := range s.names {
		f, known := s.fields[name]
		if !known {
			b.Settings = append(b.Settings, BlockSetting{Name: name, Later: s.inert[name], Moot: s.moot[name]})
			continue
		}
		field := t.FieldByIndex(f.index).Type
		in := blockType(field)
		b.Settings = append(b.Settings, BlockSetting{Name: name, Index: f.index, Type: field, Block: in != nil, Later: f.later})
		if in != nil && !f.later {
			before := len(*out)
			listBlocks(in, child(path, name), out)
			if field.Kind() == reflect.Map {
				(*out)[before].Labelled = true
			}
		}
	}
	slices.SortStableFunc(b.Settings, func(a, b BlockSetting) int { return slices.Compare(a.Index, b.Index) })
	(*out)[at].Settings = b.Settings
}

// PluginsWithoutEffect returns the names of Nomad's plugins of which a configuration is accepted and has no effect.
func PluginsWithoutEffect() []string { return slices.Clone(inertPlugins) }

// BlockValue returns the struct of a block within the struct of the one around it; the name "" stands for that itself. The result is not valid if the
// block may be stated several times.
func BlockValue(v reflect.Value, name string) reflect.Value {
	if name == "" {
		return v
	}
	in := v.FieldByIndex(schemaOf(v.Type()).fields[name].index)
	if in.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return in
}
