package command

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

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
	return f, checkEach(f.clusters, "virtual cluster", func(vc *structs.VirtualCluster) string { return vc.Name }, f.placed)
}

// readHCL reads virtual_cluster "NAMESPACE" { … }, the only block of a file.
func (v *virtualClusterFile) readHCL(src []byte) error {
	blocks, decoder, err := specBlocks{
		types:   []string{"virtual_cluster"},
		unnamed: `a virtual cluster needs the name of its namespace: write %[1]s "NAMESPACE" { … }`,
		none:    `the file has no virtual cluster: write virtual_cluster "NAMESPACE" { … }`,
	}.read(v.path, src)
	if err != nil {
		return err
	}
	v.ranges = decoder
	for _, b := range blocks {
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
func (v *virtualClusterFile) readJSON(src []byte) (err error) {
	known := jsonKeys(reflect.TypeFor[structs.VirtualCluster](), reflect.TypeFor[structs.CellQuota](), reflect.TypeFor[structs.CellWindow]())
	v.clusters, err = readJSONList[structs.VirtualCluster](v.path, src, "virtual cluster", known)
	return err
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
