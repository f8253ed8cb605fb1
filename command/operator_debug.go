package command

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// debugOptions select what `operator debug` gathers.
type debugOptions struct {
	duration, interval           time.Duration
	pprofDuration, pprofInterval time.Duration
	logLevel                     string
	logLocation                  bool
	maxNodes                     int
	nodeIDs, nodeClass           string
	serverIDs                    string
	topics                       string
	eventIndex                   uint64
	output                       string
	stale, verbose               bool
}

// Bounds of what is gathered.
const (
	maxDebugDuration = 24 * time.Hour
	maxPprofDuration = 5 * time.Minute
	maxDebugServers  = 64
)

func operatorDebug() spec {
	return spec{
		synopsis: "Collect debug information about the cluster into an archive",
		usage:    "", example: "-duration 30s -server-id leader -node-id 5f3a9c02",
		details: "For -duration the command streams the logs of servers and nodes into files. Every -interval it saves lists of jobs,\n" +
			"allocations, evaluations, nodes and the queue, and metrics. Every -pprof-interval it saves runtime profiles of agents that have\n" +
			"enable_debug. It adds the agent's configuration without secrets, the members, the Raft and scheduler configuration, the\n" +
			"servers' health and host information of the agents.\n" +
			"\n" +
			"Failures are printed, recorded in errors.txt of the archive, and do not stop the rest. Ctrl-C ends the command early; the\n" +
			"archive contains what was collected until then. Job files, environments and variables are not collected. Logs may still\n" +
			"contain confidential data: review the archive before you share it.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var o debugOptions
			fs.DurationVar(&o.duration, "duration", 5*time.Minute, "how `long` logs are streamed")
			fs.DurationVar(&o.interval, "interval", 30*time.Second, "the `time` between two snapshots of the lists; where it is not given, at most -duration")
			fs.DurationVar(&o.pprofDuration, "pprof-duration", time.Second, "how `long` a profile of the CPU and a trace are taken")
			fs.DurationVar(&o.pprofInterval, "pprof-interval", 30*time.Second, "the `time` between two profiles")
			fs.StringVar(&o.logLevel, "log-level", "DEBUG", "the lowest `level` of log lines")
			fs.BoolVar(&o.logLocation, "log-include-location", false, "add the place in the code to each log line")
			fs.IntVar(&o.maxNodes, "max-nodes", 10, "the most `nodes` that are gathered; 0: all")
			fs.StringVar(&o.nodeIDs, "node-id", "all", "`nodes`, by the beginnings of their IDs, separated by commas; \"all\", \"none\"")
			fs.StringVar(&o.nodeClass, "node-class", "", "only nodes of this `class`")
			fs.StringVar(&o.serverIDs, "server-id", "all", "`servers`, by their names, separated by commas; \"all\", \"leader\", \"none\"")
			fs.StringVar(&o.topics, "event-topic", "none", "event `topics`, Topic or Topic:key, separated by commas; events are saved without their payload")
			fs.Uint64Var(&o.eventIndex, "event-index", 0, "the `index` that events begin at")
			fs.StringVar(&o.output, "output", "", "a `directory` to make a directory of the files in, instead of an archive; it is made if it is not there")
			fs.BoolVar(&o.stale, "stale", false, "read from the server at -address even without a leader")
			fs.BoolVar(&o.verbose, "verbose", false, "print each file that is saved")
			return func(ctx context.Context, e *env, args []string) int {
				if !stated(fs, "interval") {
					o.interval = min(o.interval, o.duration)
				}
				if err := o.check(); err != nil {
					return e.usage("%v", err)
				}
				if o.stale {
					e.client = e.client.Stale()
				}
				return e.capture(ctx, o)
			}
		},
	}
}

// stated reports whether a flag was given, be it with the value that it has by default.
func stated(fs *flag.FlagSet, name string) bool {
	given := false
	fs.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	return given
}

// check returns what is wrong with the options.
func (o *debugOptions) check() error {
	levels := []string{"trace", "debug", "info", "warn", "error"}
	switch {
	case o.duration <= 0 || o.duration > maxDebugDuration:
		return fmt.Errorf("-duration %s: must be above 0, and at most %s", o.duration, maxDebugDuration)
	case o.interval <= 0 || o.pprofInterval <= 0:
		return fmt.Errorf("-interval and -pprof-interval must be above 0")
	case o.interval > o.duration:
		return fmt.Errorf("-interval %s: must be at most -duration, which is %s", o.interval, o.duration)
	case o.pprofDuration < time.Second || o.pprofDuration > maxPprofDuration:
		return fmt.Errorf("-pprof-duration %s: must be from 1s to %s", o.pprofDuration, maxPprofDuration)
	case o.maxNodes < 0:
		return fmt.Errorf("-max-nodes %d: must not be negative", o.maxNodes)
	case !slices.Contains(levels, strings.ToLower(o.logLevel)):
		return fmt.Errorf("-log-level %q: must be one of %s", o.logLevel, strings.Join(levels, ", "))
	}
	return nil
}

// listed splits a list that is separated by commas.
func listed(text string) []string {
	var out []string
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one != "" {
			out = append(out, one)
		}
	}
	return out
}

// debugAgent is an agent that something is gathered of: a server's or a node's.
type debugAgent struct {
	nodeID, serverID string
	dir              string // of its files, within the archive
}

// debugServers finds the servers that are meant. What it does not find is noted.
func (c *capture) debugServers(ctx context.Context) []debugAgent {
	requested := listed(c.o.serverIDs)
	if len(requested) == 0 || slices.Equal(requested, []string{"none"}) {
		return nil
	}
	var out []debugAgent
	if slices.Equal(requested, []string{"all"}) {
		members, err := c.e.client.Agent().Members(ctx)
		if err != nil {
			c.failed("list the servers", err)
			return nil
		}
		region, _ := c.self.Config["Region"].(string)
		for _, m := range members {
			if m.Status == structs.MemberAlive && (region == "" || m.Tags["region"] == "" || m.Tags["region"] == region) {
				out = append(out, debugAgent{serverID: m.Name, dir: "server/" + fileName(m.Name)})
			}
		}
	} else {
		for _, name := range requested {
			out = append(out, debugAgent{serverID: name, dir: "server/" + fileName(name)})
		}
	}
	if len(out) > maxDebugServers {
		c.failed("servers", fmt.Errorf("%d of %d are left out; name others with -server-id", len(out)-maxDebugServers, len(out)))
		out = out[:maxDebugServers]
	}
	return out
}

// debugNodes finds the nodes that are meant, those that are ready first.
func (c *capture) debugNodes(ctx context.Context) []debugAgent {
	requested := listed(c.o.nodeIDs)
	if len(requested) == 0 || slices.Equal(requested, []string{"none"}) {
		return nil
	}
	nodes, _, err := c.e.client.Nodes().List(ctx, nil)
	if err != nil {
		c.failed("list the nodes", err)
		return nil
	}
	all := slices.Equal(requested, []string{"all"})
	for _, prefix := range requested {
		if !all && !slices.ContainsFunc(nodes, func(n *structs.NodeListStub) bool { return strings.HasPrefix(n.ID, prefix) }) {
			c.failed("node "+prefix, fmt.Errorf("no node has an ID that starts so"))
		}
	}
	var ready []debugAgent
	for _, n := range nodes {
		named := slices.ContainsFunc(requested, func(prefix string) bool { return strings.HasPrefix(n.ID, prefix) })
		if (named || all && n.Status == structs.NodeStatusReady) && (c.o.nodeClass == "" || n.NodeClass == c.o.nodeClass) {
			ready = append(ready, debugAgent{nodeID: n.ID, dir: "client/" + fileName(n.ID)})
		}
	}
	if most := c.o.maxNodes; most > 0 && len(ready) > most {
		c.progress("Of %d nodes the first %d are gathered (-max-nodes)\n", len(ready), most)
		ready = ready[:most]
	}
	return ready
}
