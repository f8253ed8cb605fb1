package command

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// drainDeadline is Nomad's default.
const drainDeadline = time.Hour

// drainOptions are the options of a drain.
type drainOptions struct {
	enable, disable, force, noDeadline, ignoreSystem, keepIneligible bool
	detach, monitor, self, yes, verbose                              bool
	deadline                                                         time.Duration
	deadlineSet                                                      bool
	message                                                          string
	pairs                                                            listFlag
	meta                                                             map[string]string
}

func nodeDrain() spec {
	return spec{
		synopsis: "Migrate all allocations off a node, before maintenance",
		usage:    "<node>", example: "-enable -deadline 30m gpu-3",
		details: "Allocations are migrated as the migrate block of their job allows; those that remain at the deadline are stopped. The\n" +
			"node stays ineligible afterwards until `node eligibility -enable`. Unless -detach is set, the command follows the drain\n" +
			"until the node is empty.\n" +
			"\n" +
			"If only a prefix of a node's ID is given, -enable and -disable ask for confirmation when stdin is a terminal; otherwise\n" +
			"they are refused unless -yes is set.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var o drainOptions
			fs.BoolVar(&o.enable, "enable", false, "drain the node")
			fs.BoolVar(&o.disable, "disable", false, "end the drain; what has not moved stays")
			fs.DurationVar(&o.deadline, "deadline", drainDeadline, "how `long` the work has to move")
			fs.BoolVar(&o.force, "force", false, "stop everything at once")
			fs.BoolVar(&o.noDeadline, "no-deadline", false, "wait for as long as it takes")
			fs.BoolVar(&o.ignoreSystem, "ignore-system", false, "let system jobs run on")
			fs.BoolVar(&o.keepIneligible, "keep-ineligible", false, "with -disable: the node takes no new work yet")
			fs.BoolVar(&o.detach, "detach", false, "do not follow the drain")
			fs.BoolVar(&o.monitor, "monitor", false, "follow a drain that is going on")
			fs.BoolVar(&o.self, "self", false, "the agent's own node")
			fs.BoolVar(&o.yes, "yes", false, "do not ask for confirmation")
			fs.StringVar(&o.message, "m", "", "a `message` to remember, as the drain's meta \"message\"")
			fs.Var(&o.pairs, "meta", "something to remember of the drain, as `key=value`; repeatable")
			fs.BoolVar(&o.verbose, "verbose", false, "print whole IDs")
			try := whatIfFlags(fs)
			return func(ctx context.Context, e *env, args []string) int {
				fs.Visit(func(f *flag.Flag) { o.deadlineSet = o.deadlineSet || f.Name == "deadline" })
				whatIf, err := try.wanted()
				if err == nil {
					err = o.check()
				}
				if err != nil {
					return e.usage("%v", err)
				}
				id, guess, err := e.foundNode(ctx, args, o.self)
				if err != nil {
					return e.fail(err)
				}
				if whatIf {
					if !o.enable {
						return e.usage("-what-if goes with -enable only")
					}
					return try.changes(ctx, e, &structs.WhatIfChange{
						Text: drainChange(cmp.Or(cmp.Or(args...), id), o.spec()), Drain: &structs.WhatIfDrain{Node: id, DrainSpec: *o.spec()},
					})
				}
				return drain(ctx, e, id, guess, &o)
			}
		},
	}
}

// check refuses what does not go together.
func (o *drainOptions) check() error {
	o.meta = map[string]string{}
	for _, pair := range o.pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return fmt.Errorf("-meta %q: write it as key=value", pair)
		}
		o.meta[key] = value
	}
	if o.message != "" {
		o.meta["message"] = o.message
	}
	n := 0
	for _, chosen := range []bool{o.enable, o.disable, o.monitor && !o.enable} {
		if chosen {
			n++
		}
	}
	switch {
	case n != 1:
		return errors.New("one of -enable, -disable and -monitor is needed")
	case o.enable && o.force && o.noDeadline:
		return errors.New("-force and -no-deadline exclude each other")
	case o.deadlineSet && (o.force || o.noDeadline):
		return errors.New("-deadline excludes -force and -no-deadline")
	case !o.enable && (o.force || o.noDeadline || o.deadlineSet || o.ignoreSystem):
		return errors.New("-force, -no-deadline, -deadline and -ignore-system go with -enable only")
	case o.monitor && !o.enable && len(o.meta) > 0:
		return errors.New("-m and -meta go with -enable and -disable only")
	case o.keepIneligible && !o.disable:
		return errors.New("-keep-ineligible goes with -disable only")
	case o.deadline <= 0:
		return fmt.Errorf("-deadline %s: must be more than 0 (-force stops everything at once)", o.deadline)
	case o.detach && o.monitor:
		return errors.New("-detach and -monitor exclude each other")
	}
	return nil
}

func (o *drainOptions) spec() *structs.DrainSpec {
	if !o.enable {
		return nil
	}
	s := &structs.DrainSpec{Deadline: o.deadline, IgnoreSystemJobs: o.ignoreSystem}
	switch {
	case o.force:
		s.Deadline = -1
	case o.noDeadline:
		s.Deadline = 0
	}
	return s
}

func drain(ctx context.Context, e *env, id, guess string, o *drainOptions) int {
	node, _, err := e.client.Nodes().Info(ctx, id, nil)
	if err != nil {
		return e.fail(err)
	}
	if o.monitor && !o.enable {
		if node.DrainStrategy == nil {
			e.printf("Node %q is not draining\n", node.Name)
			return exitDone
		}
		return followDrain(ctx, e, id, o.verbose)
	}
	if err := o.agreed(e, node, guess); err != nil {
		return e.fail(err)
	}
	if _, err := e.client.Nodes().DrainMeta(ctx, id, o.spec(), o.disable && !o.keepIneligible, o.meta); err != nil {
		return e.fail(err)
	}
	if o.disable {
		e.printf("Node %q drain strategy unset\n", id)
		return exitDone
	}
	e.printf("%s: Node %q drain strategy set\n", e.now().Format(time.RFC3339), id)
	if o.detach {
		return exitDone
	}
	return followDrain(ctx, e, id, o.verbose)
}

// agreed asks, where that is needed, whether the node is the one that is meant. It is an error if it is not.
func (o *drainOptions) agreed(e *env, node *structs.Node, guess string) error {
	switch {
	case o.yes:
		return nil
	case guess != "" && !ui.IsTerminal(e.in):
		return notSure("node", guess, node.ID)
	}
	what := fmt.Sprintf("node %q (%s)? [y/N] ", node.Name, short(node.ID, o.verbose))
	switch {
	case o.enable && !e.confirm("Drain "+what):
		return errors.New("not drained")
	case o.disable && guess != "" && !e.confirm("End the drain of "+what):
		return errors.New("nothing was done")
	}
	return nil
}

// confirm asks back where somebody can answer; scripts are taken at their word.
func (e *env) confirm(question string) bool {
	if !ui.IsTerminal(e.in) {
		return true
	}
	e.eprintf("%s", question)
	answer, err := bufio.NewReader(e.in).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return err == nil && (answer == "y" || answer == "yes")
}

// followDrain prints what moves until the drain is over.
func followDrain(ctx context.Context, e *env, id string, verbose bool) int {
	f := &drainFollower{e: e, live: ui.NewLive(e.out), verbose: verbose, seen: map[string]string{}}
	q := &api.Query{}
	for {
		allocs, meta, err := e.client.Nodes().Allocations(ctx, id, q)
		if err != nil {
			return e.fail(err)
		}
		f.show(allocs)
		node, _, err := e.client.Nodes().Info(ctx, id, nil)
		if err != nil {
			return e.fail(err)
		}
		if node.DrainStrategy == nil {
			f.live.Clear()
			if node.LastDrain != nil && node.LastDrain.Status == "canceled" {
				f.line("Drain of node %q was canceled", id)
				return exitFailed
			}
			f.line("Drain complete for node %s", id)
			return exitDone
		}
		q.Index, q.Wait = meta.Index, time.Second // a drain may also end without an allocation's change
	}
}

// drainFollower remembers what it has printed.
type drainFollower struct {
	e       *env
	live    *ui.Live
	verbose bool
	seen    map[string]string // allocation → what was last printed about it
}

func (f *drainFollower) line(format string, args ...any) {
	f.live.Clear()
	f.e.printf("%s: %s\n", f.e.now().Format(time.RFC3339), fmt.Sprintf(format, args...))
}

func (f *drainFollower) show(allocs []*structs.Allocation) {
	left := 0
	for _, a := range allocs {
		was, known := f.seen[a.ID]
		if !known && a.ClientTerminal() {
			f.seen[a.ID] = a.ClientStatus
			continue // it ended before the drain
		}
		now := a.ClientStatus
		switch {
		case a.ClientTerminal():
		case a.ServerTerminal():
			now = "draining"
			left++
		case a.DesiredTransition.ShouldMigrate():
			now = "marked for migration"
			left++
		default:
			left++
		}
		f.seen[a.ID] = now
		if known && now != was {
			f.line("Alloc %q (%s) %s -> %s", short(a.ID, f.verbose), a.Name, was, now)
		}
	}
	f.live.Draw([]string{fmt.Sprintf("    %s still on the node", plural(left, "allocation"))})
}
