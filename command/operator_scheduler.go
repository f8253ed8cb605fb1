package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// schedulerAnswer is what -json and -t see: the API's answer with what came in its headers, as Nomad's client has it.
type schedulerAnswer struct {
	SchedulerConfig *structs.SchedulerConfiguration
	LastIndex       uint64
	LastContact     time.Duration
	KnownLeader     bool
}

func schedulerGetConfig() spec {
	return spec{
		synopsis: "Show the scheduler's configuration",
		usage:    "", example: "-json", output: true,
		setup: func(*flag.FlagSet) func(context.Context, *env, []string) int {
			return withoutArgs(func(ctx context.Context, e *env) int {
				var reply structs.SchedulerConfigReply
				meta, err := e.client.Get(ctx, "/v1/operator/scheduler/configuration", nil, &reply)
				if err != nil {
					return e.fail(err)
				}
				c := reply.SchedulerConfig
				if c == nil {
					return e.fail(fmt.Errorf("the server returned no scheduler configuration"))
				}
				if done, code := e.formatted(schedulerAnswer{
					SchedulerConfig: c, LastIndex: meta.Index, LastContact: meta.LastContact, KnownLeader: meta.KnownLeader,
				}); done {
					return code
				}
				yes := strconv.FormatBool
				pairs := append([]ui.Pair{{Key: "Scheduler Algorithm", Value: c.SchedulerAlgorithm}}, placementPairs(c)...)
				ui.Pairs(e.out, append(pairs, []ui.Pair{
					{Key: "Memory Oversubscription", Value: yes(c.MemoryOversubscriptionEnabled)},
					{Key: "Reject Job Registration", Value: yes(c.RejectJobRegistration)},
					{Key: "Pause Eval Broker", Value: yes(c.PauseEvalBroker)},
					{Key: "Preemption System Scheduler", Value: yes(c.PreemptionConfig.SystemSchedulerEnabled)},
					{Key: "Preemption Service Scheduler", Value: yes(c.PreemptionConfig.ServiceSchedulerEnabled)},
					{Key: "Preemption Batch Scheduler", Value: yes(c.PreemptionConfig.BatchSchedulerEnabled)},
					{Key: "Preemption SysBatch Scheduler", Value: yes(c.PreemptionConfig.SysBatchSchedulerEnabled)},
					{Key: "Node Limit For Feasibility", Value: fmt.Sprint(c.NodeLimitForFeasibilityChecks)},
					{Key: "Modify Index", Value: fmt.Sprint(c.ModifyIndex)},
				}...))
				return exitDone
			})
		},
	}
}

// switches are the configuration's yes-or-no values by their flags.
func switches(c *structs.SchedulerConfiguration) map[string]*bool {
	return map[string]*bool{
		"memory-oversubscription": &c.MemoryOversubscriptionEnabled, "reject-job-registration": &c.RejectJobRegistration,
		"pause-eval-broker": &c.PauseEvalBroker, "keep-whole": &c.KeepWhole,
		"preempt-system-scheduler":   &c.PreemptionConfig.SystemSchedulerEnabled,
		"preempt-service-scheduler":  &c.PreemptionConfig.ServiceSchedulerEnabled,
		"preempt-batch-scheduler":    &c.PreemptionConfig.BatchSchedulerEnabled,
		"preempt-sysbatch-scheduler": &c.PreemptionConfig.SysBatchSchedulerEnabled,
	}
}

// schedulerEdit is a change of the configuration as flags state it.
type schedulerEdit struct {
	fs     *flag.FlagSet
	wanted structs.SchedulerConfiguration
	own    map[string]setting
}

// newSchedulerEdit adds the flags to a set.
func newSchedulerEdit(fs *flag.FlagSet) *schedulerEdit {
	s := &schedulerEdit{fs: fs}
	fs.StringVar(&s.wanted.SchedulerAlgorithm, "scheduler-algorithm", "", "`binpack` or spread; ends another policy")
	s.own = ownFlags(fs)
	fs.UintVar(&s.wanted.NodeLimitForFeasibilityChecks, "node-limit", 0, "how many `nodes` affinities and spreads score")
	texts := map[string]string{
		"memory-oversubscription": "tasks may use more memory than they reserve", "reject-job-registration": "refuse new jobs",
		"pause-eval-broker": "pause the evaluation broker: nothing is scheduled", "keep-whole": "when resources are returned after a preemption, restore whole jobs first",
		"preempt-system-scheduler":  "system jobs may preempt",
		"preempt-service-scheduler": "service jobs may preempt", "preempt-batch-scheduler": "batch jobs may preempt",
		"preempt-sysbatch-scheduler": "sysbatch jobs may preempt",
	}
	for name, at := range switches(&s.wanted) {
		fs.BoolVar(at, name, false, texts[name]+": =true or =false")
	}
	return s
}

// apply writes what the flags state into a configuration. It returns an error if they state nothing, or what nobody can do.
func (s *schedulerEdit) apply(now *structs.SchedulerConfiguration) error {
	if a, p := s.wanted.SchedulerAlgorithm, s.fs.Lookup("policy").Value.String(); a != "" && p != "" && p != "default" && p != a {
		return fmt.Errorf("-scheduler-algorithm %s and -policy %s contradict each other: both set the order in which nodes are tried; use one of them", a, p)
	}
	to, from := switches(now), switches(&s.wanted)
	changed, bad := false, error(nil)
	s.fs.Visit(func(f *flag.Flag) {
		switch {
		case to[f.Name] != nil:
			*to[f.Name] = *from[f.Name]
		case f.Name == "scheduler-algorithm":
			now.SchedulerAlgorithm, now.Policy = s.wanted.SchedulerAlgorithm, ""
		case f.Name == "node-limit":
			now.NodeLimitForFeasibilityChecks = s.wanted.NodeLimitForFeasibilityChecks
		case s.own[f.Name] != nil:
			if wrong := s.own[f.Name](now, f.Value.String()); wrong != nil && bad == nil {
				bad = fmt.Errorf("-%s %q: %w", f.Name, f.Value, wrong)
			}
		default:
			return
		}
		changed = true
	})
	if bad == nil && !changed {
		bad = errors.New("nothing to change is named")
	}
	return bad
}

// text states what the flags change as a change of a what-if does.
func (s *schedulerEdit) text() string {
	var list []string
	own := switches(&s.wanted)
	s.fs.Visit(func(f *flag.Flag) {
		if own[f.Name] != nil || s.own[f.Name] != nil || f.Name == "scheduler-algorithm" || f.Name == "node-limit" {
			list = append(list, "config:"+f.Name+"="+f.Value.String())
		}
	})
	return strings.Join(list, " ")
}

func schedulerSetConfig() spec {
	return spec{
		synopsis: "Change the scheduler's configuration; options that are not set stay as they are",
		counts:   true, usage: "", example: "-scheduler-algorithm spread",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			edit := newSchedulerEdit(fs)
			check := fs.Int64("check-index", -1, "only if the configuration's modify index is `N`")
			try := whatIfFlags(fs)
			return func(ctx context.Context, e *env, args []string) int {
				if len(args) > 0 {
					return e.usage("%q: the value of a switch is written after =, as -FLAG=%s", args[0], args[0])
				}
				return edit.set(ctx, e, *check, try)
			}
		},
	}
}

// set changes the cluster's configuration, or only shows what that would do.
func (s *schedulerEdit) set(ctx context.Context, e *env, check int64, try *trial) int {
	whatIf, err := try.wanted()
	if err != nil {
		return e.usage("%v", err)
	}
	now, err := currentScheduler(ctx, e)
	if err != nil {
		return e.fail(err)
	}
	before := now.Slots.Copy()
	if err := s.apply(now); err != nil {
		return e.usage("%v", err)
	}
	if err := now.Validate(); err != nil {
		return e.fail(byFlag(s.fs, err))
	}
	if whatIf {
		return try.changes(ctx, e, checking(check, &structs.WhatIfChange{Text: s.text(), Scheduler: now})...)
	}
	if check >= 0 {
		now.ModifyIndex = uint64(check)
	}
	updated, err := e.client.Operator().SetSchedulerConfig(ctx, now, true) // never over somebody else's change
	if err != nil {
		return e.fail(err)
	}
	if !updated {
		return e.fail(errors.New(structs.SchedulerConfigChanged))
	}
	e.printf("Scheduler configuration updated!\n")
	if s.fs.Lookup("slot").Value.String() != "" {
		warnOfLostGPUs(before, now.Slots, e)
		warnOfFittingSlots(ctx, e, now.Slots)
	}
	if stray := strayText(now); stray != "" && s.fs.Lookup("bands").Value.String() != "" {
		e.printf("No band names these priorities, which belong: %s\n", stray)
	}
	return exitDone
}

// currentScheduler returns the cluster's configuration.
func currentScheduler(ctx context.Context, e *env) (*structs.SchedulerConfiguration, error) {
	now, err := e.client.Operator().SchedulerConfig(ctx)
	if err == nil && now == nil {
		err = errors.New("the server returned no scheduler configuration")
	}
	return now, err
}
