package command

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/nomadish/nomadish/command/jobspec/hclfile"
	"github.com/nomadish/nomadish/structs"
)

// virtualClusterFile is what a file states about virtual clusters.
type virtualClusterFile struct {
	path     string
	clusters []*structs.VirtualCluster
	ranges   *hclfile.Decoder // where; nil: the file is JSON
}

// readVirtualClusters reads the virtual clusters of a file, in which there is at least one; "-" is standard input.
func readVirtualClusters(stdin io.Reader, path string, isJSON bool) (*virtualClusterFile, error) {
	src, err := readSpecFile(stdin, path, "vc", "virtual clusters")
	if err != nil {
		return nil, err
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
	f, problems := hclfile.Parse(v.path, src, hclfile.Limits{FileBytes: maxSpecFile})
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
	var into any = &v.clusters
	if !isJSONList(src) {
		vc := &structs.VirtualCluster{}
		v.clusters, into = []*structs.VirtualCluster{vc}, vc
	}
	known := jsonKeys(reflect.TypeFor[structs.VirtualCluster](), reflect.TypeFor[structs.CellQuota](), reflect.TypeFor[structs.CellWindow]())
	if err := decodeStrictJSON(v.path, src, into, known); err != nil {
		return err
	}
	if len(v.clusters) == 0 {
		return fmt.Errorf("%s: the list is empty", v.path)
	}
	return nil
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
