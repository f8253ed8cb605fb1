package hclfile

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// fileFunctions read files, relative to a directory. They are for the person
// who runs the command, never for a server.
func fileFunctions(base string, limit int) map[string]function.Function {
	at := func(name string) string {
		if filepath.IsAbs(name) {
			return filepath.Clean(name)
		}
		return filepath.Join(base, name)
	}
	read := func(name string) ([]byte, error) {
		f, err := os.Open(at(name))
		if err != nil {
			return nil, err
		}
		raw, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		if len(raw) > limit {
			return nil, fmt.Errorf("%s is larger than the limit of %d bytes", name, limit)
		}
		return raw, nil
	}
	return map[string]function.Function{
		"file": textFunc(1, func(in []string) (string, error) {
			raw, err := read(in[0])
			if err == nil && !utf8.Valid(raw) {
				err = fmt.Errorf("%s is no UTF-8 text; use filebase64", in[0])
			}
			return string(raw), err
		}),
		"filebase64": textFunc(1, func(in []string) (string, error) {
			raw, err := read(in[0])
			return base64.StdEncoding.EncodeToString(raw), err
		}),
		"abspath":    textFunc(1, func(in []string) (string, error) { return filepath.Abs(at(in[0])) }),
		"pathexpand": textFunc(1, func(in []string) (string, error) { return expandHome(in[0]) }),
		"fileexists": function.New(&function.Spec{
			Params: []function.Parameter{{Name: "path", Type: cty.String}},
			Type:   function.StaticReturnType(cty.Bool),
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				info, err := os.Stat(at(args[0].AsString()))
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					return cty.NilVal, err
				}
				return cty.BoolVal(err == nil && info.Mode().IsRegular()), nil
			},
		}),
		"fileset": function.New(&function.Spec{
			Params: []function.Parameter{{Name: "path", Type: cty.String}, {Name: "pattern", Type: cty.String}},
			Type:   function.StaticReturnType(cty.Set(cty.String)),
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				return fileSet(at(args[0].AsString()), args[1].AsString())
			},
		}),
	}
}

func expandHome(path string) (string, error) {
	if path != "~" && (len(path) < 2 || path[:2] != "~/") {
		return path, nil
	}
	home, err := os.UserHomeDir()
	return home + path[1:], err
}

// fileSet returns the regular files in a directory that match a pattern.
func fileSet(dir, pattern string) (cty.Value, error) {
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return cty.NilVal, function.NewArgErrorf(1, "must be a pattern such as *.txt: %v", err)
	}
	var out []cty.Value
	slices.Sort(found)
	for _, name := range found {
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return cty.NilVal, err
		}
		out = append(out, cty.StringVal(filepath.ToSlash(rel)))
	}
	if len(out) == 0 {
		return cty.SetValEmpty(cty.String), nil
	}
	return cty.SetVal(out), nil
}
