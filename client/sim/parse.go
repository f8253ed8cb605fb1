package sim

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclparse"

	"github.com/nomadish/nomadish/internal/hcltext"
	"github.com/nomadish/nomadish/structs"
)

// Limits of a shape file: typing errors must not eat the machine.
const (
	MaxNodes       = 200_000 // nodes of a file
	maxGPUsPerNode = 4096    // GPUs of a node
	maxFileSize    = 1 << 20 // bytes of a file
)

// fileLayout is a shape as it is written; what is not stated is nil.
type fileLayout struct {
	Name       string            `hcl:"name,label"`
	Count      *int              `hcl:"count"`
	Cores      *int              `hcl:"cores"`
	MHz        *int              `hcl:"mhz"`
	Memory     *int64            `hcl:"memory"`
	Disk       *int64            `hcl:"disk"`
	Meta       map[string]string `hcl:"meta,optional"`
	Datacenter string            `hcl:"datacenter,optional"`
	Class      string            `hcl:"class,optional"`
	Pool       string            `hcl:"pool,optional"`
	GPUs       []*fileGPUs       `hcl:"gpus,block"`
	Slots      *fileSlots        `hcl:"slots,block"`
	Range      hcl.Range         `hcl:",def_range"`
}

// fileSlots are how many slots of each type a node offers, by the names of the types.
type fileSlots struct {
	Types hcl.Attributes `hcl:",remain"`
}

// counts reads the numbers of slots; what is wrong with one is reported with its line.
func (s *fileSlots) counts() (map[string]int, error) {
	if s == nil {
		return nil, nil
	}
	out := map[string]int{}
	var diags hcl.Diagnostics
	for _, name := range slices.Sorted(maps.Keys(s.Types)) {
		var n int
		diags = append(diags, gohcl.DecodeExpression(s.Types[name].Expr, nil, &n)...)
		out[name] = n
	}
	return structs.NodeSlots(out), explain(diags)
}

type fileGPUs struct {
	Name              string    `hcl:"name,label"`
	Count             *int      `hcl:"count"`
	Sockets           *int      `hcl:"sockets"`
	SwitchesPerSocket *int      `hcl:"switches_per_socket"`
	Memory            *int64    `hcl:"memory"`
	Switches          []int     `hcl:"switches,optional"`
	NVLink            bool      `hcl:"nvlink,optional"`
	MIG               int       `hcl:"mig,optional"`
	MIGProfile        *string   `hcl:"mig_profile"`
	Range             hcl.Range `hcl:",def_range"`
}

// sum is how many GPUs the switches have; 1 where none are stated.
func (g *fileGPUs) sum() int {
	if len(g.Switches) == 0 {
		return 1
	}
	n := 0
	for _, v := range g.Switches {
		n += max(0, min(v, maxGPUsPerNode+1))
	}
	return n
}

// ParseFile reads a shape file.
func ParseFile(path string) ([]Layout, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("shape file: %w", err)
	}
	if info.Size() > maxFileSize {
		return nil, fmt.Errorf("shape file %s: %d bytes, at most %d are read", path, info.Size(), maxFileSize)
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("shape file: %w", err)
	}
	return Parse(src, path)
}

// Parse reads shapes from HCL. Errors name file and line.
func Parse(src []byte, filename string) ([]Layout, error) {
	if len(src) > maxFileSize {
		return nil, fmt.Errorf("shape file %s: %d bytes, at most %d are read", filename, len(src), maxFileSize)
	}
	f, diags := hclparse.NewParser().ParseHCL(src, filename)
	if diags.HasErrors() {
		return nil, explain(diags)
	}
	var file struct {
		Layouts []*fileLayout `hcl:"shape,block"`
	}
	if diags := gohcl.DecodeBody(f.Body, nil, &file); diags.HasErrors() {
		return nil, explain(diags)
	}
	if len(file.Layouts) == 0 {
		return nil, fmt.Errorf("%s: no shape; write at least one: shape \"NAME\" { count = 4 }", filename)
	}
	var errs []error
	seen := map[string]hcl.Range{}
	layouts := make([]Layout, 0, len(file.Layouts))
	nodes := 0
	for _, s := range file.Layouts {
		if at, ok := seen[s.Name]; ok {
			errs = append(errs, fmt.Errorf("%s: shape %q: there is one of that name at line %d; node names would clash", s.Range, s.Name, at.Start.Line))
		}
		seen[s.Name] = s.Range
		layout := s.layout()
		var err error
		if layout.Slots, err = s.Slots.counts(); err != nil {
			errs = append(errs, err)
		}
		if err := layout.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.Range, err))
		}
		nodes += max(0, min(layout.Count, MaxNodes+1))
		layouts = append(layouts, layout)
	}
	if nodes > MaxNodes {
		errs = append(errs, fmt.Errorf("%s: over %d nodes in all; one process simulates no more", filename, MaxNodes))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return layouts, nil
}

// explain puts each diagnostic on a line of its own.
func explain(diags hcl.Diagnostics) error {
	var errs []error
	for _, d := range diags {
		if d.Severity != hcl.DiagError {
			continue
		}
		where := ""
		if d.Subject != nil {
			where = d.Subject.String() + ": "
		}
		errs = append(errs, fmt.Errorf("%s%s", where, hcltext.Of(d)))
	}
	return errors.Join(errs...)
}

func or[T any](v *T, unset T) T {
	if v == nil {
		return unset
	}
	return *v
}

func (s *fileLayout) layout() Layout {
	out := Layout{
		Name: s.Name, Count: or(s.Count, 1), Cores: or(s.Cores, 4), MHz: or(s.MHz, 2000),
		Memory: or(s.Memory, 8192), Disk: or(s.Disk, 100_000), Meta: s.Meta,
		Datacenter: s.Datacenter, Class: s.Class, Pool: s.Pool,
	}
	for _, g := range s.GPUs {
		out.GPUs = append(out.GPUs, GPUs{
			Name: g.Name, Count: or(g.Count, g.sum()), Sockets: or(g.Sockets, 1),
			SwitchesPerSocket: or(g.SwitchesPerSocket, 1), Memory: or(g.Memory, 0),
			Switches: g.Switches, NVLink: g.NVLink, MIG: g.MIG, MIGProfile: or(g.MIGProfile, "1g.10gb"),
		})
	}
	return out
}

// Validate refuses what cannot be a node. The error lists everything wrong.
func (s Layout) Validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("shape %q: "+format, append([]any{s.Name}, args...)...))
	}
	if s.Name == "" || strings.ContainsAny(s.Name, "/ \t\n\x00") {
		bad("the name must not be empty or contain blanks or slashes")
	}
	within := func(name string, v, low, high int64) {
		if v < low || v > high {
			bad("%s = %d: must be %d to %d", name, v, low, high)
		}
	}
	within("count", int64(s.Count), 1, MaxNodes)
	within("cores", int64(s.Cores), 1, 65535)
	within("mhz", int64(s.MHz), 1, 1_000_000)
	within("memory", s.Memory, 1, 1<<40)
	within("disk", s.Disk, 0, 1<<50)
	if len(s.Slots) > structs.MaxSlotTypes {
		bad("%d types of slots; at most %d are allowed", len(s.Slots), structs.MaxSlotTypes)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Slots)) {
		if err := structs.CheckNodeSlots(name, s.Slots[name]); err != nil {
			bad("%w", err)
		}
	}
	gpus := 0
	names := map[string]bool{}
	for _, g := range s.GPUs {
		g.validate(bad)
		if names[g.kind()] {
			bad("gpus %q: %s is given twice", g.Name, g.kind())
		}
		names[g.kind()] = true
		gpus += g.devices()
	}
	if gpus > maxGPUsPerNode {
		bad("%d GPUs and slices; a node has at most %d", gpus, maxGPUsPerNode)
	}
	return errors.Join(errs...)
}
