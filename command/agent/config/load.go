package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// Load lays the files over c in order. A path may be a directory: its files that
// end in .hcl or .json are taken by name, its subdirectories are not entered. It
// returns what is worth a warning; the error is Problems, or one of reading.
func (c *Config) Load(paths ...string) (Problems, error) {
	var warnings, problems Problems
	for _, path := range paths {
		files, err := configFiles(path)
		if err != nil {
			return warnings, fmt.Errorf("configuration %s: %w", path, err)
		}
		if len(files) == 0 {
			warnings = append(warnings, Problem{File: path, Text: "the directory holds no .hcl or .json file"})
		}
		for _, file := range files {
			src, err := readFile(file)
			if err != nil {
				return warnings, fmt.Errorf("configuration %s: %w", file, err)
			}
			w, err := c.Merge(file, src)
			warnings = append(warnings, w...)
			var ps Problems
			if errors.As(err, &ps) {
				problems = append(problems, ps...)
			}
			c.Sources.Files = append(c.Sources.Files, file)
		}
	}
	return warnings, problems.Err()
}

// Merge lays the text of one file over c: JSON if its name or its first character shows it, else HCL. The
// error is Problems; c is then only good for ValidateRead.
func (c *Config) Merge(name string, src []byte) (Problems, error) {
	t, problems := parse(name, src)
	if t == nil {
		c.Sources.unparsed = true
		return nil, problems
	}
	if c.Sources.origins == nil {
		c.Sources.origins = map[string]Problem{}
	}
	d := &decoder{origins: c.Sources.origins}
	d.object(reflect.ValueOf(c).Elem(), t, "")
	c.Sources.unread = append(c.Sources.unread, d.unread...)
	problems = append(problems, d.problems...)
	slices.SortStableFunc(problems, func(a, b Problem) int { return a.Line - b.Line }) // of one file
	return d.warnings, problems.Err()
}

func configFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, unwrapPath(err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, unwrapPath(err)
	}
	var files []string
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") {
			continue
		}
		if ext := filepath.Ext(name); ext == ".hcl" || ext == ".json" {
			files = append(files, filepath.Join(path, name))
		}
	}
	slices.Sort(files)
	return files, nil
}

// unwrapPath drops the path that os puts into its errors; ours names it already.
func unwrapPath(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path) // the operator names it
	if err != nil {
		return nil, unwrapPath(err)
	}
	src, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	return src, errors.Join(err, f.Close())
}
