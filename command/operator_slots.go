package command

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// slotPairs are what the scheduler's configuration states about projects, with the defaults written out.
func slotPairs(s *structs.SlotSettings) []ui.Pair {
	s = s.Effective()
	pairs := []ui.Pair{
		{Key: "Grace", Value: s.Grace.String()},
		{Key: "Allocated Bonus", Value: strconv.Itoa(*s.AllocatedBonus)},
		{Key: "Requeue Bonus", Value: strconv.Itoa(*s.RequeueBonus)},
		{Key: "Max Requeues", Value: strconv.Itoa(*s.MaxRequeues)},
		{Key: "Suspend Limit", Value: s.SuspendLimit.String()},
		{Key: "Light", Value: strconv.FormatFloat(*s.Light, 'g', -1, 64)},
	}
	for _, t := range s.Types {
		pairs = append(pairs, ui.Pair{Key: "Slot " + t.Name, Value: slotText(t)})
	}
	return pairs
}

// slotText writes a type of slots as -slot reads it.
func slotText(t structs.SlotType) string {
	text := fmt.Sprintf("cores:%d", t.Cores)
	if t.MemoryMB != 0 {
		text += fmt.Sprintf(",memory:%d", t.MemoryMB)
	}
	if t.GPUs != 0 {
		text += fmt.Sprintf(",gpus:%d", t.GPUs)
	}
	if t.Kind != "" {
		text += ",kind:" + t.Kind
	}
	return text + ",grace:" + t.Grace.String()
}

// slotFlags are the flags for what projects have to do with scheduling, named like the keys of the agent's scheduling block.
func slotFlags(fs *flag.FlagSet) map[string]setting {
	fs.String("grace", "", "how long a request that has a free slot waits before it takes resources from others: a `duration`, 0s for at once")
	var types listFlag
	fs.Var(&types, "slot", "what a slot of a type is, as `TYPE=cores:2,memory:4096,gpus:1,kind:H100,grace:30s`; what is not named stays, "+
		"TYPE=default resets a type, \"default\" all; repeatable")
	fs.String("allocated-bonus", "", "the `number` added to the effective priority of a project's job that was recognised")
	fs.String("requeue-bonus", "", "the `number` added to it each time the job is requeued")
	fs.String("max-requeues", "", "how many `times` an instance is requeued for slots and bands")
	fs.String("suspend-limit", "", "how long an instance stays suspended before it is requeued: a `duration`")
	fs.String("light", "", "the `part` of a slot that an instance may request at most to run in a guard slot, as 0.25")
	return map[string]setting{
		"grace": slotSetting(func(s *structs.SlotSettings) **time.Duration { return &s.Grace }, readSlotDuration),
		"slot": func(c *structs.SchedulerConfiguration, _ string) error {
			return editSlots(c, func(s *structs.SlotSettings) error { return setSlotTypes(s, types) })
		},
		"allocated-bonus": slotSetting(func(s *structs.SlotSettings) **int { return &s.AllocatedBonus }, readSlotNumber),
		"requeue-bonus":   slotSetting(func(s *structs.SlotSettings) **int { return &s.RequeueBonus }, readSlotNumber),
		"max-requeues":    slotSetting(func(s *structs.SlotSettings) **int { return &s.MaxRequeues }, readSlotNumber),
		"suspend-limit":   slotSetting(func(s *structs.SlotSettings) **time.Duration { return &s.SuspendLimit }, readSlotDuration),
		"light": slotSetting(func(s *structs.SlotSettings) **float64 { return &s.Light }, func(text string) (float64, error) {
			part, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return 0, errors.New("write a part from 0 to 1, as 0.25")
			}
			return part, nil
		}),
	}
}

func readSlotDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, errors.New("write a duration, such as 60s or 1h30m")
	}
	return d, nil
}

func readSlotNumber(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, errors.New("write a whole number")
	}
	return n, nil
}

// slotSetting returns the setting of one value.
func slotSetting[T any](at func(*structs.SlotSettings) **T, read func(text string) (T, error)) setting {
	return func(c *structs.SchedulerConfiguration, text string) error {
		return editSlots(c, func(s *structs.SlotSettings) error {
			*at(s) = nil
			if text == "" || text == "default" {
				return nil
			}
			value, err := read(text)
			*at(s) = &value
			return err
		})
	}
}

// editSlots edits the settings of slots and checks them. What the server has written out of defaults is left out before, so that the grace
// of types follows that of the settings.
func editSlots(c *structs.SchedulerConfiguration, edit func(*structs.SlotSettings) error) error {
	s := cmp.Or(c.Slots.Canonical(), &structs.SlotSettings{})
	if err := edit(s); err != nil {
		return err
	}
	c.Slots = s
	if err := s.Validate(); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "Slots: "))
	}
	return nil
}

// setSlotTypes changes the types of slots that are named; the others stay.
func setSlotTypes(s *structs.SlotSettings, texts []string) error {
	for _, text := range texts {
		name, volume, ok := strings.Cut(text, "=")
		switch {
		case text == "" || text == "default":
			s.Types = nil
		case !ok:
			return errors.New("write it as TYPE=cores:2,memory:4096")
		default:
			if err := setSlotType(s, name, volume); err != nil {
				return err
			}
		}
	}
	return nil
}

// setSlotType changes what is named of one type.
func setSlotType(s *structs.SlotSettings, name, volume string) error {
	at := slices.IndexFunc(s.Types, func(t structs.SlotType) bool { return t.Name == name })
	if volume == "default" {
		s.Types = slices.DeleteFunc(s.Types, func(t structs.SlotType) bool { return t.Name == name })
		return nil
	}
	if at < 0 {
		at = len(s.Types)
		s.Types = append(s.Types, structs.SlotType{Name: name})
	}
	t := &s.Types[at]
	for _, word := range words(volume) {
		key, value, _ := strings.Cut(word, ":")
		number, err := strconv.Atoi(value)
		switch key {
		case "cores":
			if t.Cores = number; err == nil && number == 0 {
				return fmt.Errorf("cores 0: a slot has 1 or more; %s=default resets the type", name)
			}
		case "memory":
			t.MemoryMB = int64(number)
		case "gpus":
			t.GPUs = number
		case "kind":
			t.Kind, err = value, nil
		case "grace":
			var grace time.Duration
			grace, err = time.ParseDuration(value)
			t.Grace = &grace
		default:
			return fmt.Errorf("%q: there are cores, memory, gpus, kind and grace", key)
		}
		if err != nil {
			return fmt.Errorf("%s %q: write it as %s=cores:2,memory:4096,gpus:1,kind:H100,grace:30s", key, value, name)
		}
	}
	return nil
}

// warnOfLostGPUs warns of types whose slots have no GPUs any more: nodes may offer them still.
func warnOfLostGPUs(before, after *structs.SlotSettings, e *env) {
	for _, t := range before.Effective().Types {
		if t.GPUs > 0 && after.TypeOf(t.Name).GPUs == 0 {
			e.eprintf("Warning: slot type %q has no GPUs any more: jobs that request GPUs cannot use its slots\n", t.Name)
		}
	}
}

// warnOfFittingSlots warns of types of which nodes offer more slots than their cores and their memory hold by these settings: these alone may be given out.
func warnOfFittingSlots(ctx context.Context, e *env, settings *structs.SlotSettings) {
	nodes, _, err := e.client.Nodes().List(ctx, &api.Query{Params: map[string]string{"resources": "true"}})
	if err != nil {
		e.eprintf("Warning: whether nodes hold the slots that they offer is not known: %v\n", err)
		return
	}
	type shortage struct {
		nodes, offered, fit int
		example             string
	}
	short := map[string]*shortage{}
	for _, stub := range nodes {
		n := &structs.Node{NodeResources: stub.NodeResources}
		offered, fit := map[string]int{}, settings.FittingSlots(n)
		n.AddSlots(offered)
		for name := range offered { // order does not matter: each type has its own
			if fit[name] == offered[name] {
				continue
			}
			if short[name] == nil {
				short[name] = &shortage{example: stub.Name, offered: offered[name], fit: fit[name]}
			}
			short[name].nodes++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(short)) {
		of := short[name]
		e.eprintf("Warning: slot type %q: on %s the cores and the memory do not hold all slots, as on %s: of %d only %d may be given out\n",
			name, plural(of.nodes, "node"), of.example, of.offered, of.fit)
	}
}
