package command

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"os"
	"slices"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/picture"
	"github.com/nomadish/nomadish/structs"
)

// How much of the topology is drawn unless more is requested.
const (
	topologyTrees = 64   // nodes with devices whose trees are drawn
	topologyLines = 1000 // nodes with devices that get a line each
)

func topologyCmd() spec {
	return spec{
		synopsis: "Show the topology: its cells, the allocations that use them, and what is free",
		counts:   true, usage: "", example: "-node dgx-0", output: true,
		details: "The cells of the site (such as racks) come first, then nodes, then the cells in each node down to single devices, with the\n" +
			"allocations that use them. Up to 64 nodes are drawn with their trees, up to 1,000 with one line each; with more, only\n" +
			"the cells above nodes are drawn. The summary of free cells counts each cell at its largest size, so that no device\n" +
			"counts twice.\n" +
			"\n" +
			"Where namespaces own cells, those that are bound are marked with their owners, and their devices that others use as lent.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			node := fs.String("node", "", "one `node`, by its ID, the beginning of it, or its name")
			verbose := fs.Bool("verbose", false, "draw every device of every node; print whole IDs and links")
			svg := fs.String("svg", "", "write a picture of the devices of the nodes that have some, and of who uses them, to a `file`, which any browser shows")
			return func(ctx context.Context, e *env, args []string) int {
				if len(args) > 0 {
					return e.usage("no argument is needed, but there is %q; a node is named by -node", args[0])
				}
				t, err := readTopology(ctx, e, *node, *verbose || *svg != "")
				if err != nil {
					return e.fail(err)
				}
				if *svg != "" {
					if err := writePicture(*svg, t); err != nil {
						return e.fail(err)
					}
					e.printf("Picture written to %s\n", *svg)
					return exitDone
				}
				if done, code := e.formatted(t); done {
					return code
				}
				newTopologyPrinter(e, t, *verbose || *node != "", *verbose).print()
				return exitDone
			}
		},
	}
}

// writePicture writes the picture of a topology to a file.
func writePicture(path string, t *structs.Topology) error {
	if t.Devices == 0 {
		return errors.New("no node has devices, and the picture shows devices only: without -svg it is printed what workflows have reserved of nodes")
	}
	return os.WriteFile(path, picture.Topology(t), 0o644) // it is for others to see
}

// readTopology reads one node, or all: with every device where they are few enough to
// be drawn.
func readTopology(ctx context.Context, e *env, node string, all bool) (*structs.Topology, error) {
	if node != "" {
		stub, err := e.oneNode(ctx, node)
		if err != nil {
			return nil, err
		}
		t, _, err := e.client.Nodes().Topology(ctx, stub.ID, nil)
		return t, err
	}
	t, meta, err := e.client.Topology(ctx, true, &api.Query{PerPage: 2 * topologyTrees})
	if err != nil || meta.NextToken == "" {
		return t, err // the usual case: one answer, of one moment
	}
	if t, err = topologyPages(ctx, e, all, &api.Query{}); err != nil || all {
		return t, err
	}
	withDevices := 0
	for _, n := range t.Nodes {
		if n.Devices > 0 {
			withDevices++
		}
	}
	if withDevices > topologyTrees {
		return t, nil
	}
	detailed, err := topologyPages(ctx, e, true, &api.Query{Filter: "Devices != 0"})
	if err != nil {
		return nil, err
	}
	trees := map[string]*structs.TopologyNode{}
	for _, n := range detailed.Nodes {
		trees[n.ID] = n
	}
	for _, n := range t.Nodes {
		if d := trees[n.ID]; d != nil {
			n.Cells, n.Links = d.Cells, d.Links
		}
	}
	return t, nil
}

// topologyPages reads all pages into one.
func topologyPages(ctx context.Context, e *env, details bool, q *api.Query) (*structs.Topology, error) {
	all := &structs.Topology{}
	sites := map[string]*structs.TopologySite{}
	for {
		t, meta, err := e.client.Topology(ctx, details, q)
		if err != nil {
			return nil, err
		}
		if len(t.Levels) > len(all.Levels) {
			all.Levels = t.Levels
		}
		for _, s := range t.Sites {
			if sum := sites[s.ID]; sum != nil {
				addSite(sum, s)
				continue
			}
			sites[s.ID] = s
			all.Sites = append(all.Sites, s)
		}
		all.Nodes = append(all.Nodes, t.Nodes...)
		all.Add(t.DeviceCounts)
		for _, f := range t.FreeCells {
			all.AddFree(f)
		}
		for _, o := range t.Owners {
			all.AddOwner(o)
		}
		if meta.NextToken == "" {
			slices.SortStableFunc(all.FreeCells, func(a, b structs.FreeCells) int {
				return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(b.Size, a.Size))
			})
			return all, nil
		}
		q.NextToken = meta.NextToken
	}
}

// addSite adds what another page has of a cell above nodes. It has an owner if all pages with devices of it have that one.
func addSite(sum, more *structs.TopologySite) {
	switch {
	case sum.Devices == 0:
		sum.CellOwner = more.CellOwner
	case more.Devices > 0 && more.CellOwner != sum.CellOwner:
		sum.CellOwner = structs.CellOwner{}
	}
	sum.Nodes += more.Nodes
	sum.Add(more.DeviceCounts)
}
