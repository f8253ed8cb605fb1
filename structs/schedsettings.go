package structs

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Dimensions in which the room of nodes is compared (semantics part 1).
const (
	DimensionGPUs   = "gpus"
	DimensionCPU    = "cpu"    // MHz
	DimensionMemory = "memory" // MiB
)

// Defaults of the scheduler's configuration.
const (
	DefaultReservationAfter = 5 * time.Minute
	DefaultReservationTTL   = time.Hour
	DefaultCycle            = 20 * time.Second
)

// Limits of the scheduler's configuration: what is larger is a mistake.
const (
	maxSiteLevels     = 16 // levels of the topology above nodes
	maxPreferredCells = 64 // sizes of preferred cells
)

// Dimensions are all that there are, in the default order.
func Dimensions() []string { return []string{DimensionGPUs, DimensionCPU, DimensionMemory} }

// NodeLevels are the names of the levels within a node, lowest first. A level "nvlink"
// may stand anywhere between "gpu" and "node".
func NodeLevels() []string {
	return []string{LevelMIG, LevelGPU, LevelNVLink, LevelPCIe, LevelSocket, LevelNode}
}

// Policies are the values of Job.Policy and SchedulerConfiguration.Policy.
func Policies() []string {
	fields := Fields(reflect.TypeFor[Job]())
	at := slices.IndexFunc(fields, func(f Field) bool { return f.Name == "Policy" })
	return slices.Clone(fields[at].OneOf())
}

// NodeOrder is the policy in force: Policy if one is stated, else what Nomad's
// SchedulerAlgorithm states: spread, or packing, which looks at what is left of devices
// too. Policy "binpack" packs without that.
func (c *SchedulerConfiguration) NodeOrder() string {
	switch {
	case c.Policy != "":
		return c.Policy
	case c.SchedulerAlgorithm == AlgorithmSpread:
		return AlgorithmSpread
	}
	return PolicyLeastFragmentation
}

// SetNodeOrder states a policy, and as SchedulerAlgorithm, which Nomad's clients read and
// write, what is nearest to it. An empty one leaves it to SchedulerAlgorithm.
func (c *SchedulerConfiguration) SetNodeOrder(policy string) {
	switch policy {
	case AlgorithmSpread:
		c.SchedulerAlgorithm, c.Policy = AlgorithmSpread, ""
	case AlgorithmBinpack, PolicyLeastFragmentation:
		c.SchedulerAlgorithm, c.Policy = AlgorithmBinpack, policy
	default:
		c.Policy = policy
	}
}

// DimensionOrder is the order in which room is compared.
func (c *SchedulerConfiguration) DimensionOrder() []string {
	if len(c.Dimensions) == 0 {
		return Dimensions()
	}
	return c.Dimensions
}

// Step is the granularity of a dimension, in its unit.
func (c *SchedulerConfiguration) Step(dimension string) int64 {
	if step := c.Granularity[dimension]; step > 0 {
		return step
	}
	switch dimension {
	case DimensionCPU:
		return 500
	case DimensionMemory:
		return 1024
	}
	return 1
}

// SiteLevels are the levels above nodes, lowest first. Where none were ever stated,
// nodes with equal meta.rack share a cell of level rack.
func (c *SchedulerConfiguration) SiteLevels() []TopologyLevel {
	if c.Levels == nil {
		return []TopologyLevel{{Name: "rack", Meta: "rack"}}
	}
	return c.Levels
}

// ReserveAfter is how long a request waits before it reserves room; false: it never does.
func (c *SchedulerConfiguration) ReserveAfter() (time.Duration, bool) {
	if c.ReservationAfter == 0 {
		return DefaultReservationAfter, true
	}
	return c.ReservationAfter, c.ReservationAfter > 0
}

// ReserveAgain returns in how long a request is looked at again that has waited so long that it may reserve room, and could not.
func (c *SchedulerConfiguration) ReserveAgain() time.Duration {
	after, _ := c.ReserveAfter()
	return max(after, time.Second)
}

// ReserveTTL is how long a reservation lasts.
func (c *SchedulerConfiguration) ReserveTTL() time.Duration {
	if c.ReservationTTL == 0 {
		return DefaultReservationTTL
	}
	return c.ReservationTTL
}

// Effective is the configuration with its defaults written out, for people and
// programs that read it; Policy stays empty where SchedulerAlgorithm is the policy, so
// that either can be changed without the other. It shares nothing with c.
func (c *SchedulerConfiguration) Effective() *SchedulerConfiguration {
	e := *c
	e.Dimensions = slices.Clone(c.DimensionOrder())
	e.Granularity = map[string]int64{}
	for _, d := range Dimensions() {
		e.Granularity[d] = c.Step(d)
	}
	e.Levels = append([]TopologyLevel{}, c.SiteLevels()...)
	e.PreferredCells = append([]int{}, c.PreferredCells...)
	if after, ok := c.ReserveAfter(); ok {
		e.ReservationAfter = after
	}
	e.ReservationTTL = c.ReserveTTL()
	e.Bands = slices.Clone(c.PriorityBands())
	e.Cycle = c.CycleLength()
	aging := 1
	if c.Aging != nil {
		aging = *c.Aging
	}
	e.Aging = &aging
	calendar := c.WeekCalendar()
	e.Calendar = &calendar
	e.Slots = c.Slots.Effective()
	return &e
}

// Keep takes over from was what a change does not state: those of our own fields that
// are absent from it, by name. A program that knows only Nomad's fields so leaves ours
// alone, but one that states another SchedulerAlgorithm ends the Policy before it.
func (c *SchedulerConfiguration) Keep(was *SchedulerConfiguration, absent []string) {
	for _, name := range absent {
		switch name {
		case "Policy":
			if c.SchedulerAlgorithm == was.SchedulerAlgorithm {
				c.Policy = was.Policy
			}
		case "Dimensions":
			c.Dimensions = slices.Clone(was.Dimensions)
		case "Granularity":
			c.Granularity = maps.Clone(was.Granularity)
		case "Levels":
			c.Levels = slices.Clone(was.Levels)
		case "PreferredCells":
			c.PreferredCells = slices.Clone(was.PreferredCells)
		case "ReservationAfter":
			c.ReservationAfter = was.ReservationAfter
		case "ReservationTTL":
			c.ReservationTTL = was.ReservationTTL
		case "Bands":
			c.Bands = slices.Clone(was.Bands)
		case "KeepWhole":
			c.KeepWhole = was.KeepWhole
		case "Cycle":
			c.Cycle = was.Cycle
		case "Aging":
			c.Aging = was.Aging
		case "Calendar":
			c.Calendar = was.Calendar
		case "Slots":
			c.Slots = was.Slots.Copy()
		}
	}
}

// OwnSchedulerFields are the fields of SchedulerConfiguration that Nomad does not have.
func OwnSchedulerFields() []string {
	return []string{"Policy", "Dimensions", "Granularity", "Levels", "PreferredCells", "ReservationAfter", "ReservationTTL",
		"Bands", "KeepWhole", "Cycle", "Aging", "Calendar", "Slots"}
}

// UnmarshalJSON reads the configuration by the rules of [Job.UnmarshalJSON]: durations
// may be nanoseconds, or strings such as "5m".
func (c *SchedulerConfiguration) UnmarshalJSON(b []byte) error {
	err := decodeJSON(b, c)
	if err != nil && strings.HasPrefix(err.Error(), "Bands") {
		return fmt.Errorf(`%w; write bands as in [{"Low": 1, "High": 40}, {"Low": 41, "High": 100}]`, err)
	}
	return err
}

// Validate names what is wrong with the configuration, and what is allowed.
func (c *SchedulerConfiguration) Validate() error {
	switch c.SchedulerAlgorithm {
	case AlgorithmBinpack, AlgorithmSpread:
	default:
		return Errorf(CodeBadRequest, "SchedulerAlgorithm %q: allowed are %q and %q",
			c.SchedulerAlgorithm, AlgorithmBinpack, AlgorithmSpread)
	}
	if known := Policies(); c.Policy != "" && !slices.Contains(known, c.Policy) {
		return Errorf(CodeBadRequest, "Policy %q: must be %s%s", clip(c.Policy), orList(known), didYouMean(c.Policy, known))
	}
	if (c.Policy == AlgorithmBinpack || c.Policy == AlgorithmSpread) && c.Policy != c.SchedulerAlgorithm {
		return Errorf(CodeBadRequest, "Policy %q: contradicts SchedulerAlgorithm %q; state one of them", c.Policy, c.SchedulerAlgorithm)
	}
	if err := c.validateDimensions(); err != nil {
		return err
	}
	if err := ValidateLevels(c.Levels); err != nil {
		return err
	}
	if len(c.PreferredCells) > maxPreferredCells {
		return Errorf(CodeBadRequest, "PreferredCells: %d sizes; at most %d are allowed", len(c.PreferredCells), maxPreferredCells)
	}
	for i, n := range c.PreferredCells {
		switch {
		case n < 1 || n > MaxNodeDevices:
			return Errorf(CodeBadRequest, "PreferredCells: %d: a size is from 1 to %d GPUs", n, MaxNodeDevices)
		case slices.Contains(c.PreferredCells[:i], n):
			return Errorf(CodeBadRequest, "PreferredCells: %d is stated twice", n)
		}
	}
	if err := c.validateBands(); err != nil {
		return err
	}
	if err := c.validateCalendar(); err != nil {
		return err
	}
	if err := c.Slots.Validate(); err != nil {
		return err
	}
	if c.Cycle < 0 {
		return Errorf(CodeBadRequest, "Cycle %s: must not be negative; Aging 0 is what turns aging off", c.Cycle)
	}
	if c.Aging != nil && *c.Aging != 0 && *c.Aging != 1 {
		return Errorf(CodeBadRequest, "Aging %d: must be 1, or 0 to turn it off", *c.Aging)
	}
	if c.ReservationTTL < 0 {
		return Errorf(CodeBadRequest, "ReservationTTL %s: must not be negative; a negative ReservationAfter is what turns reservations off", c.ReservationTTL)
	}
	return nil
}

func (c *SchedulerConfiguration) validateDimensions() error {
	known := Dimensions()
	for i, d := range c.Dimensions {
		switch {
		case !slices.Contains(known, d):
			return Errorf(CodeBadRequest, "Dimensions: %q: must be %s%s", clip(d), orList(known), didYouMean(d, known))
		case slices.Contains(c.Dimensions[:i], d):
			return Errorf(CodeBadRequest, "Dimensions: %q is stated twice", d)
		}
	}
	for _, d := range sortedKeys(c.Granularity) {
		switch step := c.Granularity[d]; {
		case !slices.Contains(known, d):
			return Errorf(CodeBadRequest, "Granularity: %q: must be %s%s", clip(d), orList(known), didYouMean(d, known))
		case step < 1:
			return Errorf(CodeBadRequest, "Granularity: %s = %d: must be at least 1", d, step)
		}
	}
	return nil
}

// ValidateLevels refuses site levels that could not be distinguished from each other or
// from the levels within a node.
func ValidateLevels(levels []TopologyLevel) error {
	if len(levels) > maxSiteLevels {
		return Errorf(CodeBadRequest, "Levels: %d; at most %d are allowed above nodes", len(levels), maxSiteLevels)
	}
	for i, l := range levels {
		switch {
		case !isWord(l.Name, true):
			return Errorf(CodeBadRequest, "Levels: %q: a level is named by letters, digits, dashes and underscores, such as %q", clip(l.Name), "rack")
		case slices.Contains(NodeLevels(), l.Name):
			return Errorf(CodeBadRequest, "Levels: %q is a level within nodes, which they report themselves; name only those above nodes", l.Name)
		case slices.ContainsFunc(levels[:i], func(o TopologyLevel) bool { return o.Name == l.Name }):
			return Errorf(CodeBadRequest, "Levels: %q is stated twice", l.Name)
		case l.Meta == "" || len(l.Meta) > maxNameLength || strings.ContainsFunc(l.Meta, unicode.IsControl):
			return Errorf(CodeBadRequest, "Levels: %q needs the name of a key of the nodes' meta, such as %q, not %q", l.Name, l.Name, clip(l.Meta))
		}
	}
	return nil
}
