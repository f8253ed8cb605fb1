package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/command/tracefile"
	"github.com/nomadish/nomadish/scheduler/trace"
)

const (
	// sharesByPeak stands for virtual clusters in proportion to the tenants' peaks, in place of a file.
	sharesByPeak = "peaks"
	// virtualClustersFile is where they are written to.
	virtualClustersFile = "virtual-clusters.hcl"
)

// sharingNames are the ways of sharing as the report names them.
var sharingNames = map[string]string{
	trace.SharingCells: "virtual clusters", trace.SharingQueue: "one queue", trace.SharingCounts: "GPU counts",
}

// parseSharings reads "cells,queue".
func parseSharings(s string) ([]string, error) {
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		name := strings.TrimSpace(part)
		if !slices.Contains(trace.Sharings(), name) {
			return nil, fmt.Errorf("-sharing %q: is not known; there are %s", name, strings.Join(trace.Sharings(), ", "))
		}
		if slices.Contains(out, name) {
			return nil, fmt.Errorf("-sharing: %s is named twice", name)
		}
		out = append(out, name)
	}
	return out, nil
}

// readSharing reads who owns what and how it is shared; without virtual clusters there is one way, which has no name.
func (p *simPlan) readSharing() (err error) {
	o := p.o
	if o.virtualClusters == "" {
		p.sharings = []string{""}
		if o.sharing != "" {
			return errors.New("-sharing: compares ways of sharing what virtual clusters own: state these with -virtual-clusters FILE")
		}
		return nil
	}
	if o.drop || o.order != "" {
		return errors.New("-virtual-clusters: what tenants own is replayed while jobs come and go: leave out -drop and -order")
	}
	if p.sharings = []string{trace.SharingCells}; o.sharing != "" {
		if p.sharings, err = parseSharings(o.sharing); err != nil {
			return err
		}
	}
	if o.virtualClusters != sharesByPeak {
		file, failed := readVirtualClusters(nil, o.virtualClusters, false)
		if failed != nil {
			return fmt.Errorf("-virtual-clusters: %w", failed)
		}
		p.virtualClusters = file.clusters
		return p.admitted()
	}
	peaks, err := tracefile.Peaks(p.trace.Rows())
	if err != nil {
		return err
	}
	nodes := 0
	for _, n := range p.nodes {
		if len(n.NodeResources.Devices) > 0 {
			nodes++
		}
	}
	if p.virtualClusters, err = tracefile.InProportion(peaks, nodes); err != nil {
		return fmt.Errorf("-virtual-clusters %s: %w", sharesByPeak, err)
	}
	return p.admitted()
}

// admitted refuses virtual clusters that the nodes do not have.
func (p *simPlan) admitted() error {
	if err := trace.CheckVirtualClusters(p.nodes, p.config, p.virtualClusters); err != nil {
		return fmt.Errorf("-virtual-clusters: %w", err)
	}
	return nil
}

// policyName is a policy's name in the report: with how tenants shared or workflows ran, where that is compared.
func (p *simPlan) policyName(policy, sharing, workflows string) string {
	way := sharingNames[sharing] + reservationNames[workflows] // one of the two is not compared
	switch {
	case way == "":
		return policy
	case len(p.policies) == 1:
		return way
	}
	return policy + ", " + way
}

// writeVirtualClusters writes those that were found by peaks as a file that -virtual-clusters reads.
func (p *simPlan) writeVirtualClusters() error {
	if p.o.virtualClusters != sharesByPeak {
		return nil
	}
	var b strings.Builder
	b.WriteString("# Whole nodes in proportion to the peaks of the trace's tenants.\n")
	for _, v := range p.virtualClusters {
		fmt.Fprintf(&b, "\nvirtual_cluster %q {\n", v.Name)
		for _, c := range v.Cells {
			fmt.Fprintf(&b, "  cells {\n    level = %q\n    count = %d\n  }\n", c.Level, c.Count)
		}
		b.WriteString("}\n")
	}
	return os.WriteFile(filepath.Join(p.o.out, virtualClustersFile), []byte(b.String()), 0o644) // it is for others to read
}

// sharingNotes say who owns what, for who reads the report.
func (p *simPlan) sharingNotes() (out []string) {
	if len(p.virtualClusters) == 0 {
		return nil
	}
	list := make([]string, len(p.virtualClusters))
	for i, v := range p.virtualClusters {
		cells := make([]string, len(v.Cells))
		for k, c := range v.Cells {
			cells[k] = fmt.Sprintf("%d × %s", c.Count, c.Level)
		}
		list[i] = v.Name + " " + strings.Join(cells, " + ")
	}
	by := "as " + filepath.Base(p.o.virtualClusters) + " states it"
	if p.o.virtualClusters == sharesByPeak {
		by = "in proportion to their peaks"
	}
	return append(out, "Tenants own, "+by+": "+strings.Join(list, ", ")+".")
}
