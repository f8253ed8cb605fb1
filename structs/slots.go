package structs

import (
	"cmp"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"
)

// Defaults of what projects have to do with scheduling (docs/design/semantics.md, part 4).
const (
	DefaultGrace          = time.Minute
	DefaultAllocatedBonus = 100
	DefaultRequeueBonus   = 10
	DefaultMaxRequeues    = 3
	DefaultSuspendLimit   = time.Hour
	DefaultLight          = 0.25
)

// What the settings of slots may be at most.
const (
	maxSlotAmount  = 1 << 30   // cores, MiB or GPUs of a slot
	maxSlotBonus   = 1_000_000 // a bonus of effective priority
	maxMaxRequeues = 1_000_000 // max_requeues
)

// SlotType is the standard volume of a type of slots. An instance costs as many slots as its cores and devices need of it; what it requests of
// other resources beyond that takes guard slots on its node.
type SlotType struct {
	Name  string `hcl:"name,label"`
	Cores int    `hcl:"cores"` // the cores of a slot; default: 1
	// MemoryMB is in MiB; 0: for each core of the slot the node's memory divided by the node's cores.
	MemoryMB int64  `hcl:"memory" json:",omitempty" codec:",omitempty"`
	GPUs     int    `hcl:"gpus" json:",omitempty" codec:",omitempty"` // how many devices of type gpu a slot has
	Kind     string `hcl:"kind" json:",omitempty" codec:",omitempty"` // which of them: vendor/type/model, or the end of it
	// Grace is how long an entitled request waits before it takes a slot from others; default: grace of the configuration, and none for
	// the interactive types.
	Grace *time.Duration `hcl:"grace" json:",omitempty" codec:",omitempty"`
}

// SlotSettings is what the scheduler's configuration states about projects and their slots. Nil fields, and those that are 0, are at their defaults.
type SlotSettings struct {
	// Types are those that differ from the default volume, sorted by name. See SlotTypeOf.
	Types []SlotType `hcl:"slot,block" json:",omitempty" codec:",omitempty"`
	// Grace is how long an entitled request waits before it takes a slot from others.
	Grace          *time.Duration `hcl:"grace" json:",omitempty" codec:",omitempty"`
	AllocatedBonus *int           `hcl:"allocated_bonus" json:",omitempty" codec:",omitempty"` // added to the effective priority of what was recognised
	RequeueBonus   *int           `hcl:"requeue_bonus" json:",omitempty" codec:",omitempty"`   // added to it each time that something is requeued
	// MaxRequeues is how often an instance is requeued for slots and bands.
	MaxRequeues *int `hcl:"max_requeues" json:",omitempty" codec:",omitempty"`
	// SuspendLimit is how long an instance stays suspended before it is requeued.
	SuspendLimit *time.Duration `hcl:"suspend_limit" json:",omitempty" codec:",omitempty"`
	// Light is the part of each of a slot's amounts that an instance may request at most to run in a guard.
	Light *float64 `hcl:"light" json:",omitempty" codec:",omitempty"`
}

// Copy returns a copy that shares nothing with s.
func (s *SlotSettings) Copy() *SlotSettings {
	if s == nil {
		return nil
	}
	out := *s
	out.Types = slices.Clone(s.Types)
	for i := range out.Types {
		out.Types[i].Grace = clonePointer(s.Types[i].Grace)
	}
	out.Grace, out.AllocatedBonus, out.RequeueBonus = clonePointer(s.Grace), clonePointer(s.AllocatedBonus), clonePointer(s.RequeueBonus)
	out.MaxRequeues, out.SuspendLimit, out.Light = clonePointer(s.MaxRequeues), clonePointer(s.SuspendLimit), clonePointer(s.Light)
	return &out
}

func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// Effective returns the settings with all defaults written out, the built-in types of slots among them. It shares nothing with s, which may be nil.
func (s *SlotSettings) Effective() *SlotSettings {
	out := s.Copy()
	if out == nil {
		out = &SlotSettings{}
	}
	defaults := func(p **time.Duration, d time.Duration) {
		if *p == nil {
			*p = &d
		}
	}
	counts := func(p **int, n int) {
		if *p == nil {
			*p = &n
		}
	}
	defaults(&out.Grace, DefaultGrace)
	counts(&out.AllocatedBonus, DefaultAllocatedBonus)
	counts(&out.RequeueBonus, DefaultRequeueBonus)
	counts(&out.MaxRequeues, DefaultMaxRequeues)
	defaults(&out.SuspendLimit, DefaultSuspendLimit)
	if out.Light == nil {
		light := DefaultLight
		out.Light = &light
	}
	byName := map[string]SlotType{}
	for _, t := range out.Types {
		byName[t.Name] = t
	}
	for _, name := range knownSlotTypes() {
		if _, stated := byName[name]; !stated {
			byName[name] = SlotType{Name: name}
		}
	}
	out.Types = nil
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out.Types = append(out.Types, out.typed(byName[name]))
	}
	return out
}

// typed returns a type with the defaults of what it leaves out.
func (s *SlotSettings) typed(t SlotType) SlotType {
	t.Cores = cmp.Or(t.Cores, 1)
	if t.Grace == nil {
		var grace time.Duration
		if t.Name != SlotInteractiveLight && t.Name != SlotInteractiveHeavy {
			grace = *s.Grace
		}
		t.Grace = &grace
	}
	return t
}

// Canonical returns the settings as they are stored: without what is at its default, and nil if nothing differs. A type whose grace is that
// of the settings follows it when it changes. The result shares nothing with s, which may be nil.
func (s *SlotSettings) Canonical() *SlotSettings {
	out, defaults := s.Copy(), (*SlotSettings)(nil).Effective()
	if out == nil {
		return nil
	}
	out.Types = nil
	whole := s.Effective()
	for _, t := range whole.Types {
		unstated := whole.typed(SlotType{Name: t.Name})
		if *t.Grace == *unstated.Grace {
			t.Grace = nil
		}
		if t.Grace != nil || t.Cores != unstated.Cores || t.MemoryMB != 0 || t.GPUs != 0 || t.Kind != "" || !slices.Contains(knownSlotTypes(), t.Name) {
			out.Types = append(out.Types, t)
		}
	}
	out.Grace = unlessDefault(out.Grace, defaults.Grace)
	out.AllocatedBonus = unlessDefault(out.AllocatedBonus, defaults.AllocatedBonus)
	out.RequeueBonus = unlessDefault(out.RequeueBonus, defaults.RequeueBonus)
	out.MaxRequeues = unlessDefault(out.MaxRequeues, defaults.MaxRequeues)
	out.SuspendLimit = unlessDefault(out.SuspendLimit, defaults.SuspendLimit)
	out.Light = unlessDefault(out.Light, defaults.Light)
	if reflect.DeepEqual(*out, SlotSettings{}) {
		return nil
	}
	return out
}

// unlessDefault returns nil instead of a value that is the default.
func unlessDefault[T comparable](p, standard *T) *T {
	if p != nil && *p == *standard {
		return nil
	}
	return p
}

// knownSlotTypes returns the types that exist whether or not the settings state them.
func knownSlotTypes() []string { return append(BuiltInSlotTypes(), SlotOverflow) }

// Validate returns an error of CodeBadRequest that names what is wrong with the settings, and what is allowed. s may be nil.
func (s *SlotSettings) Validate() error {
	if s == nil {
		return nil
	}
	bad := func(format string, args ...any) error { return Errorf(CodeBadRequest, "Slots: "+format, args...) }
	seen := map[string]bool{}
	if len(s.Types) > MaxSlotTypes {
		return bad("%d types; at most %d are allowed", len(s.Types), MaxSlotTypes)
	}
	for _, t := range s.Types {
		switch {
		case !isWord(t.Name, true):
			return bad("type %q: a type of slots is named by 1 to 128 letters, digits, dashes or underscores", clip(t.Name))
		case seen[t.Name]:
			return bad("type %q is stated twice", t.Name)
		case t.Cores < 0 || t.MemoryMB < 0 || t.GPUs < 0 || t.Cores > maxSlotAmount || t.MemoryMB > maxSlotAmount || t.GPUs > MaxNodeDevices:
			return bad("type %q: cores, memory and gpus must not be negative, nor more than a node may have", t.Name)
		case t.Kind != "" && t.GPUs == 0:
			return bad("type %q: kind %q is stated without gpus", t.Name, clip(t.Kind))
		case t.Grace != nil && *t.Grace < 0:
			return bad("type %q: grace %s: must not be negative", t.Name, *t.Grace)
		}
		seen[t.Name] = true
	}
	switch {
	case s.Grace != nil && *s.Grace < 0:
		return bad("grace %s: must not be negative", *s.Grace)
	case s.AllocatedBonus != nil && (*s.AllocatedBonus < 0 || *s.AllocatedBonus > maxSlotBonus):
		return bad("allocated_bonus %d: must be 0 to %d", *s.AllocatedBonus, maxSlotBonus)
	case s.RequeueBonus != nil && (*s.RequeueBonus < 0 || *s.RequeueBonus > maxSlotBonus):
		return bad("requeue_bonus %d: must be 0 to %d", *s.RequeueBonus, maxSlotBonus)
	case s.MaxRequeues != nil && (*s.MaxRequeues < 0 || *s.MaxRequeues > maxMaxRequeues):
		return bad("max_requeues %d: must be 0 to %d", *s.MaxRequeues, maxMaxRequeues)
	case s.SuspendLimit != nil && *s.SuspendLimit <= 0:
		return bad("suspend_limit %s: must be more than 0", *s.SuspendLimit)
	case s.Light != nil && (*s.Light < 0 || *s.Light > 1 || math.IsNaN(*s.Light)):
		return bad("light %g: must be 0 to 1", *s.Light)
	}
	return nil
}

// SlotTypeOf returns the volume of a type of slots, with the defaults of what is not stated. Any name is a type: that of 1 core if nothing is stated.
func (c *SchedulerConfiguration) SlotTypeOf(name string) SlotType { return c.Slots.TypeOf(name) }

// TypeOf returns the volume of a type of slots, as SlotTypeOf does. s may be nil.
func (s *SlotSettings) TypeOf(name string) SlotType {
	grace := DefaultGrace
	if s != nil && s.Grace != nil {
		grace = *s.Grace
	}
	effective, out := SlotSettings{Grace: &grace}, SlotType{Name: name}
	if s != nil {
		if at := slices.IndexFunc(s.Types, func(t SlotType) bool { return t.Name == name }); at >= 0 {
			out = s.Types[at]
		}
	}
	return effective.typed(out)
}

// VolumeOn returns the processor, in MHz, and the memory, in MiB, that a slot of the type has on a node. A slot of more cores than the node
// has is as large as the node.
func (t SlotType) VolumeOn(r *NodeResources) (mhz, memoryMB int64) {
	cores, all := min(int64(cmp.Or(t.Cores, 1)), int64(r.Cpu.TotalCpuCores)), int64(r.Cpu.TotalCpuCores)
	if all == 0 {
		return 0, t.MemoryMB
	}
	return cores * r.Cpu.MHzPerCore(), cmp.Or(t.MemoryMB, r.Memory.MemoryMB*cores/all)
}

// SlotBonus returns what recognition adds to the effective priority.
func (c *SchedulerConfiguration) SlotBonus() int64 {
	if c.Slots == nil || c.Slots.AllocatedBonus == nil {
		return DefaultAllocatedBonus
	}
	return int64(*c.Slots.AllocatedBonus)
}

// BonusOfRequeue returns what each requeueing adds to a request's effective priority.
func (c *SchedulerConfiguration) BonusOfRequeue() int64 {
	if c.Slots == nil || c.Slots.RequeueBonus == nil {
		return DefaultRequeueBonus
	}
	return int64(*c.Slots.RequeueBonus)
}

// RequeuesAllowed returns how often an instance is requeued for slots and bands before it is immune to them.
func (c *SchedulerConfiguration) RequeuesAllowed() int {
	if c.Slots == nil || c.Slots.MaxRequeues == nil {
		return DefaultMaxRequeues
	}
	return *c.Slots.MaxRequeues
}

// SuspendedFor returns how long an instance stays suspended before it is requeued.
func (c *SchedulerConfiguration) SuspendedFor() time.Duration {
	if c.Slots == nil || c.Slots.SuspendLimit == nil {
		return DefaultSuspendLimit
	}
	return *c.Slots.SuspendLimit
}

// LightPart returns which part of each of a slot's amounts an instance may request at most to run in a guard.
func (c *SchedulerConfiguration) LightPart() float64 {
	if c.Slots == nil || c.Slots.Light == nil {
		return DefaultLight
	}
	return *c.Slots.Light
}

// VolumeOfAll returns the processor, in MHz, and the memory, in MiB, of all slots that a node states.
func (s *SlotSettings) VolumeOfAll(r *NodeResources) (mhz, memoryMB int64) {
	for name, count := range r.Slots { // order does not matter: they are summed
		each, memory := s.TypeOf(name).VolumeOn(r)
		mhz, memoryMB = mhz+each*int64(count), memoryMB+memory*int64(count)
	}
	return mhz, memoryMB
}

// FittingSlots returns how many of a node's slots of each type may be given out: those that it offers, and no more than its cores and its memory hold, one
// type after the other in the order of their names. A node that does not know its cores holds all.
func (s *SlotSettings) FittingSlots(n *Node) map[string]int { return s.SlotsBeside(n, 0, 0) }

// SlotsBeside returns FittingSlots of a node beside so many MHz and MiB of it that are others'.
func (s *SlotSettings) SlotsBeside(n *Node, mhz, memoryMB int64) map[string]int {
	counts := map[string]int{}
	if n.AddSlots(counts); n.NodeResources == nil || n.NodeResources.Cpu.TotalCpuCores == 0 {
		return counts
	}
	r := n.NodeResources
	cores, memory := int64(r.Cpu.TotalCpuCores), max(0, r.Memory.MemoryMB-memoryMB)
	if each := r.Cpu.MHzPerCore(); mhz > 0 && each > 0 {
		cores = max(0, cores-(mhz+each-1)/each)
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t := s.TypeOf(name)
		_, eachMemory := t.VolumeOn(r)
		each := min(int64(t.Cores), int64(r.Cpu.TotalCpuCores))
		fit := min(int64(counts[name]), cores/each)
		if eachMemory > 0 {
			fit = min(fit, memory/eachMemory)
		}
		counts[name] = int(fit)
		cores, memory = cores-fit*each, memory-fit*eachMemory
	}
	return counts
}
