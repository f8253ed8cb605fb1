package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/nomadish/nomadish/command/jobspec/hclfile"
	"github.com/nomadish/nomadish/structs"
)

// maxVirtualClusterFile bounds a file of virtual clusters, in bytes.
const maxVirtualClusterFile = 4 << 20

// virtualClusterFile is what a file states about virtual clusters.
type virtualClusterFile struct {
	path     string
	clusters []*structs.VirtualCluster
	ranges   *hclfile.Decoder // where; nil: the file is JSON
}

// readVirtualClusters reads the virtual clusters of a file, in which there is at least one; "-" is standard input.
func readVirtualClusters(stdin io.Reader, path string, isJSON bool) (*virtualClusterFile, error) {
	from := stdin
	if path != "-" {
		f, err := os.Open(path) // the user names the file
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%s: no such file (`nomadish vc init` writes an example)", path)
		}
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // read only
		from = f
	}
	src, err := io.ReadAll(io.LimitReader(from, maxVirtualClusterFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(src) > maxVirtualClusterFile {
		return nil, fmt.Errorf("%s: over %d bytes: a file of virtual clusters may have at most that many", path, maxVirtualClusterFile)
	}
	f := &virtualClusterFile{path: path}
	read := f.readHCL
	if isJSON {
		read = f.readJSON
	}
	if err := read(src); err != nil {
		return nil, otherLanguage(path, src, isJSON, err)
	}
	seen := map[string]bool{}
	for _, vc := range f.clusters {
		if err := vc.Validate(); err != nil {
			return nil, f.placed(vc, err)
		}
		if seen[vc.Name] {
			return nil, f.placed(vc, fmt.Errorf("the file states the virtual cluster %q twice", vc.Name))
		}
		seen[vc.Name] = true
	}
	return f, nil
}

// readHCL reads virtual_cluster "NAMESPACE" { … }, the only block of a file.
func (v *virtualClusterFile) readHCL(src []byte) error {
	f, problems := hclfile.Parse(v.path, src, hclfile.Limits{FileBytes: maxVirtualClusterFile})
	if len(problems) > 0 {
		return problems.Err()
	}
	scope, blocks, problems := hclfile.NewScope(f, hclfile.Options{})
	for _, a := range f.Attributes() {
		problems = append(problems, hclfile.At(a.NameRange, "unknown attribute %q: at the top of the file stand only blocks virtual_cluster", a.Name))
	}
	var found []*hclsyntax.Block
	for _, b := range blocks {
		switch {
		case b.Type != "virtual_cluster":
			problems = append(problems, hclfile.At(b.DefRange(), "unknown block %q: at the top of the file stand only blocks virtual_cluster", b.Type))
		case len(b.Labels) != 1 || b.Labels[0] == "":
			problems = append(problems, hclfile.At(b.DefRange(), `a virtual cluster needs the name of its namespace: write virtual_cluster "NAMESPACE" { … }`))
		default:
			found = append(found, b)
		}
	}
	if len(found) == 0 && len(problems) == 0 {
		problems = append(problems, hclfile.Problem{File: v.path, Text: `the file has no virtual cluster: write virtual_cluster "NAMESPACE" { … }`})
	}
	if len(problems) > 0 {
		return problems.Err()
	}
	v.ranges = hclfile.NewDecoder(f, scope)
	for _, b := range found {
		vc := &structs.VirtualCluster{}
		v.ranges.Block(b, vc, virtualClusterPath(b.Labels[0]))
		vc.Name = b.Labels[0]
		v.clusters = append(v.clusters, vc)
	}
	return v.ranges.Problems().Err()
}

func virtualClusterPath(name string) string {
	return structs.ChildPath("", "virtual_cluster", name, -1)
}

// readJSON reads a virtual cluster as the API has it, or a list of some.
func (v *virtualClusterFile) readJSON(src []byte) error {
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.DisallowUnknownFields()
	var into any = &v.clusters
	if text := bytes.TrimSpace(src); len(text) == 0 || text[0] != '[' {
		vc := &structs.VirtualCluster{}
		v.clusters, into = []*structs.VirtualCluster{vc}, vc
	}
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("%s:%d: bad JSON: %w", v.path, lineOf(src, dec, err), nearestKey(err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s:%d: something follows the JSON value", v.path, lineOf(src, dec, nil))
	}
	if len(v.clusters) == 0 {
		return fmt.Errorf("%s: the list is empty", v.path)
	}
	return nil
}

// lineOf returns the line on which an error of a decoder lies, or else the one on which it stopped.
func lineOf(src []byte, dec *json.Decoder, err error) int {
	at := dec.InputOffset()
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.As(err, &kind):
		at = kind.Offset
	}
	return 1 + bytes.Count(src[:min(int64(len(src)), at)], []byte("\n"))
}

// nearestKey adds to an error that names an unknown key the one that was most likely meant.
func nearestKey(err error) error {
	quoted, found := strings.CutPrefix(err.Error(), "json: unknown field ") // encoding/json has no type for it
	if !found {
		return err
	}
	var known []string
	for _, t := range []reflect.Type{reflect.TypeFor[structs.VirtualCluster](), reflect.TypeFor[structs.CellQuota](), reflect.TypeFor[structs.CellWindow]()} {
		for _, f := range structs.Fields(t) {
			if f.Kind != structs.FieldHidden {
				known = append(known, f.Name)
			}
		}
	}
	key, unquoted := strconv.Unquote(quoted)
	if unquoted != nil {
		return err
	}
	if near := structs.Nearest(key, known); near != "" {
		return fmt.Errorf("unknown key %q; did you mean %q?", key, near)
	}
	return fmt.Errorf("unknown key %q; known are %s", key, strings.Join(known, ", "))
}

// placed puts the place in the file before an error about a virtual cluster, as [structs.VirtualCluster.Validate] writes it.
func (v *virtualClusterFile) placed(vc *structs.VirtualCluster, err error) error {
	if v.ranges == nil {
		return fmt.Errorf("%s: %w", v.path, err)
	}
	path, rest := virtualClusterPath(vc.Name), ""
	if _, about, ok := strings.Cut(err.Error(), strconv.Quote(vc.Name)+": "); ok {
		rest = about
	}
	for {
		head, after, ok := strings.Cut(rest, ": ")
		block, number, numbered := strings.Cut(head, " ")
		n, bad := strconv.Atoi(number)
		if !ok || !numbered || bad != nil || n < 1 || block != "cells" && block != "window" {
			break
		}
		path, rest = structs.ChildPath(path, block, "", n-1), after
	}
	field := rest[:max(0, strings.IndexAny(rest, ": "))] // level "nodes": …, or level is missing
	rng, ok := v.ranges.Range(path, field)
	if !ok {
		return fmt.Errorf("%s: %w", v.path, err)
	}
	return fmt.Errorf("%s:%d:%d: %w", v.path, rng.Start.Line, rng.Start.Column, err)
}
