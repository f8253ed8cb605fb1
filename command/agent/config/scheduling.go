package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/internal/week"
	"github.com/nomadish/nomadish/structs"
)

// SchedulerConfig is the scheduler's configuration of a new cluster: the defaults with
// what is stated here laid over them. An error states what contradicts itself.
func (s *Server) SchedulerConfig() (structs.SchedulerConfiguration, error) {
	c := structs.DefaultSchedulerConfiguration()
	d := &s.DefaultScheduler
	if d.SchedulerAlgorithm != "" {
		c.SchedulerAlgorithm = d.SchedulerAlgorithm
	}
	if d.NodeLimit > 0 {
		c.NodeLimitForFeasibilityChecks = d.NodeLimit
	}
	c.MemoryOversubscriptionEnabled = d.MemoryOversubscriptionEnabled
	c.RejectJobRegistration = d.RejectJobRegistration
	c.PauseEvalBroker = d.PauseEvalBroker
	p := &s.Scheduling
	for _, name := range preemptionNames {
		if on := cmp.Or(*d.Preemption.at(name), *p.Preemption.at(name)); on != nil {
			*preemptionSwitch(&c.PreemptionConfig, name) = *on
		}
	}
	if d.SchedulerAlgorithm == "" {
		c.SetNodeOrder(p.Policy)
	} else {
		c.Policy = p.Policy
	}
	c.Dimensions, c.Granularity, c.PreferredCells = p.Dimensions, p.Granularity, p.PreferredCells
	c.ReservationAfter, c.ReservationTTL = p.ReservationAfter, p.ReservationTTL
	c.KeepWhole, c.Cycle, c.Aging = p.KeepWhole, p.Cycle, p.Aging
	c.Slots = p.Slots.Canonical()
	if stated := structs.CalendarConfiguration(s.Calendar); stated != (structs.CalendarConfiguration{}) {
		c.Calendar = &stated
	}
	var err, wrong error
	c.Levels, err = s.Topology.SiteLevels()
	c.Bands, wrong = p.bands()
	return c, cmp.Or(err, wrong)
}

// bands are the bands as the scheduler has them; nil when none are stated.
func (s *Scheduling) bands() ([]structs.PriorityBand, error) {
	var out []structs.PriorityBand
	for i, b := range s.Bands {
		if len(b) != 2 {
			return nil, fmt.Errorf("[%d] has %d numbers: a band is its lowest and its highest priority, such as [1, 40]", i, len(b))
		}
		out = append(out, structs.PriorityBand{Low: b[0], High: b[1]})
	}
	return out, nil
}

// preemptionNames are the switches of preemption by their names in a file.
var preemptionNames = []string{"system_scheduler_enabled", "sysbatch_scheduler_enabled", "batch_scheduler_enabled", "service_scheduler_enabled"}

// at is where a switch of a name is kept.
func (p *Preemption) at(name string) **bool {
	return []**bool{&p.System, &p.SysBatch, &p.Batch, &p.Service}[slices.Index(preemptionNames, name)]
}

// preemptionSwitch is where the scheduler's configuration keeps it.
func preemptionSwitch(c *structs.PreemptionConfig, name string) *bool {
	return []*bool{
		&c.SystemSchedulerEnabled, &c.SysBatchSchedulerEnabled, &c.BatchSchedulerEnabled, &c.ServiceSchedulerEnabled,
	}[slices.Index(preemptionNames, name)]
}

// SiteLevels are the levels above nodes, lowest first; nil when nothing is stated. Those
// after "node" in levels are the site's (where "node" is not named: all that no node has).
func (t *Topology) SiteLevels() ([]structs.TopologyLevel, error) {
	if t.Levels == nil && len(t.Level) == 0 {
		return nil, nil
	}
	meta := map[string]string{}
	var names []string
	for _, l := range t.Level {
		if _, twice := meta[l.Name]; twice {
			return nil, fmt.Errorf("level %q is stated twice", l.Name)
		}
		if l.Meta == "" {
			l.Meta = l.Name
		}
		meta[l.Name] = l.Meta
		names = append(names, l.Name)
	}
	if t.Levels != nil {
		above, err := aboveNodes(t.Levels)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if !slices.Contains(above, name) {
				return nil, fmt.Errorf("level %q: levels does not list it above %q: %s", name, structs.LevelNode, strings.Join(t.Levels, ", "))
			}
		}
		names = above
	}
	out := make([]structs.TopologyLevel, 0, len(names))
	for _, name := range names {
		key := meta[name]
		if key == "" {
			key = name
		}
		out = append(out, structs.TopologyLevel{Name: name, Meta: key})
	}
	return out, structs.ValidateLevels(out)
}

// aboveNodes checks the order of all levels and returns those of the site.
func aboveNodes(levels []string) ([]string, error) {
	order := slices.DeleteFunc(structs.NodeLevels(), func(l string) bool { return l == structs.LevelNVLink }) // whose place differs
	node := slices.Index(levels, structs.LevelNode)
	above, last := []string{}, ""
	for i, l := range levels {
		within := slices.Contains(structs.NodeLevels(), l)
		switch {
		case slices.Contains(levels[:i], l):
			return nil, fmt.Errorf("levels: %q is listed twice", l)
		case within && (len(above) > 0 || (node >= 0 && i > node)):
			return nil, fmt.Errorf("levels: %q lies within nodes; list the lowest first, the site's own after %q", l, structs.LevelNode)
		case within && slices.Contains(order, l):
			if slices.Index(order, l) < slices.Index(order, last) {
				return nil, fmt.Errorf("levels: %q is below %q; list the lowest first", l, last)
			}
			last = l
		case !within && i > node: // what stands before "node" is a node's own word
			above = append(above, l)
		}
	}
	return above, nil
}

// slots checks what projects have to do with scheduling, one key at a time, so that each problem is reported at its position.
func (k *checker) slots() {
	s := &k.c.Server.Scheduling.Slots
	check := func(key, named string, one structs.SlotSettings) {
		if err := one.Validate(); err != nil {
			k.bad("server.scheduling."+key, ": %s", strings.TrimPrefix(plainText(err), named))
		}
	}
	check("grace", "grace ", structs.SlotSettings{Grace: s.Grace})
	check("allocated_bonus", "allocated_bonus ", structs.SlotSettings{AllocatedBonus: s.AllocatedBonus})
	check("requeue_bonus", "requeue_bonus ", structs.SlotSettings{RequeueBonus: s.RequeueBonus})
	check("max_requeues", "max_requeues ", structs.SlotSettings{MaxRequeues: s.MaxRequeues})
	check("suspend_limit", "suspend_limit ", structs.SlotSettings{SuspendLimit: s.SuspendLimit})
	check("light", "light ", structs.SlotSettings{Light: s.Light})
	before := len(k.problems)
	for _, t := range s.Types {
		check(fmt.Sprintf("slot[%q]", t.Name), fmt.Sprintf("type %q: ", t.Name), structs.SlotSettings{Types: []structs.SlotType{t}})
	}
	if len(k.problems) == before {
		check("slot", "", structs.SlotSettings{Types: s.Types})
	}
}

// nodeSlots checks the slots that the node offers.
func (k *checker) nodeSlots() {
	slots := k.c.Client.Slots
	if len(slots) > structs.MaxSlotTypes {
		k.bad("client.slots", ": %d types; at most %d are allowed", len(slots), structs.MaxSlotTypes)
	}
	for name, n := range slots { // order does not matter: problems are sorted
		if err := structs.CheckNodeSlots(name, n); err != nil {
			text := strings.TrimPrefix(err.Error(), "slots: ")
			k.bad("client.slots."+name, ": %s", strings.TrimPrefix(text, name+": "))
		}
	}
}

// scheduling checks what seeds the scheduler's configuration.
func (k *checker) scheduling() {
	s := &k.c.Server
	switch a := s.DefaultScheduler.SchedulerAlgorithm; a {
	case "", structs.AlgorithmBinpack, structs.AlgorithmSpread:
	default:
		k.bad("server.default_scheduler_config.scheduler_algorithm", " %q: allowed are binpack and spread", a)
		return
	}
	if _, err := s.Topology.SiteLevels(); err != nil {
		k.bad("server.topology", ": %s", plainText(err))
	}
	if _, err := s.Scheduling.bands(); err != nil {
		k.bad("server.scheduling.bands", "%v", err)
	}
	k.slots()
	if _, err := week.New(s.Calendar.TimeZone, ""); err != nil {
		k.bad("server.calendar.time_zone", ": %v", err)
	}
	if _, err := week.New("", s.Calendar.WeekStarts); err != nil {
		k.bad("server.calendar.week_starts", ": %v", err)
	}
	for _, name := range preemptionNames {
		ours, theirs := *s.Scheduling.Preemption.at(name), *s.DefaultScheduler.Preemption.at(name)
		if ours != nil && theirs != nil && *ours != *theirs {
			k.bad("server.scheduling.preemption."+name, " = %t: default_scheduler_config.preemption_config sets %t; state it in one place", *ours, *theirs)
		}
	}
	parts := []struct {
		path string
		set  func(c, from *structs.SchedulerConfiguration)
	}{
		{"server.scheduling.policy", func(c, from *structs.SchedulerConfiguration) {
			c.Policy, c.SchedulerAlgorithm = from.Policy, from.SchedulerAlgorithm
		}},
		{"server.scheduling.dimensions", func(c, from *structs.SchedulerConfiguration) { c.Dimensions = from.Dimensions }},
		{"server.scheduling.granularity", func(c, from *structs.SchedulerConfiguration) { c.Granularity = from.Granularity }},
		{"server.scheduling.preferred_cells", func(c, from *structs.SchedulerConfiguration) { c.PreferredCells = from.PreferredCells }},
		{"server.scheduling.reservation_ttl", func(c, from *structs.SchedulerConfiguration) { c.ReservationTTL = from.ReservationTTL }},
		{"server.scheduling.bands", func(c, from *structs.SchedulerConfiguration) { c.Bands = from.Bands }},
		{"server.scheduling.cycle", func(c, from *structs.SchedulerConfiguration) { c.Cycle = from.Cycle }},
		{"server.scheduling.aging", func(c, from *structs.SchedulerConfiguration) { c.Aging = from.Aging }},
	}
	all, _ := s.SchedulerConfig() // its error was reported above
	for _, p := range parts {     // one at a time, so that each problem is reported at its position
		c := structs.DefaultSchedulerConfiguration()
		p.set(&c, &all)
		if err := c.Validate(); err != nil {
			k.bad(p.path, ": %s", plainText(err))
		}
	}
}

// plainText is an error's text without the field that the API names it by.
func plainText(err error) string {
	text := err.Error()
	for _, field := range structs.OwnSchedulerFields() {
		if rest, ok := strings.CutPrefix(text, field); ok {
			return strings.TrimLeft(rest, ": ")
		}
	}
	return text
}
