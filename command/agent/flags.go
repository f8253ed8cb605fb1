package agent

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/command/agent/config"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// Usage is the command's help.
const Usage = `Usage: nomadish agent [options]

  Starts the agent, which runs a server, a client, or both, until it receives
  an interrupt. Configuration comes from files in HCL or JSON and from the flags
  below, which take precedence.

  A whole cluster in one process, for trying things out:

      $ nomadish agent -dev

  A server and a client by their files:

      $ nomadish agent -config /etc/nomadish.d

General options:

  -config=PATH           A file, or a directory whose .hcl and .json files are read.
                         Repeatable; later files override earlier ones.
  -dev                   Server and client in one process on loopback, with the server's
                         state in memory. For development only.
  -server                Run a server.
  -client                Run a client.
  -bind=ADDR             Address to listen on. Default 127.0.0.1, which only this machine
                         can reach. Other addresses need TLS and gossip keys, or -insecure.
  -insecure              Start even if other machines can reach the agent without
                         authentication. Only for trusted networks: anyone who can reach the
                         agent can run programs on every node.
  -http-port=PORT        Port of the HTTP API. Default 4646; 0 takes any free one.
  -rpc-port=PORT         Port of RPC. Default 4647; 0 takes any free one.
  -serf-port=PORT        Port of gossip among servers. Default 4648, with -dev any free one.
  -serf-wan-port=PORT    Port of gossip with servers of other regions. Default 4649 where
                         that of -serf-port is its default, else off; -1 switches it off.
  -data-dir=PATH         Directory of the agent's persistent state; an absolute path.
  -region=NAME           Default global.
  -dc=NAME               Datacenter. Default dc1.
  -node=NAME             Name of this agent. Default: the host's.
  -log-level=LEVEL       TRACE, DEBUG, INFO, WARN, ERROR or OFF. Default INFO.
  -log-json              Log in JSON.
  -log-include-location  Add the place in the code to each log line.

Server options:

  -bootstrap-expect=N    Number of servers that bootstrap the cluster. Default 1; if servers
                         to join are given, 0: the cluster exists.
  -retry-join=ADDR       Gossip address of a server to join, host or host:port; the agent
                         retries until it reaches the server. Repeatable.
  -retry-max=N           Number of retries. Default 0: no limit.
  -retry-interval=TIME   Time between retries. Default 30s; the first retries come sooner.
  -retry-join-wan=ADDR   The same for a server of another region, whose port is 4649 by default.
  -join=ADDR             Like -retry-join, but the agent does not start if no server is reached.
  -rejoin                Rejoin the previously known servers, even after a leave.
  -encrypt=KEY           Key of the gossip between servers, in base64. Prefer a file: other
                         users can see the command line.

Client options:

  -servers=ADDRS         Servers to join, host:port, separated by commas. Repeatable.
  -state-dir=PATH        Default: client/ in the data directory.
  -alloc-dir=PATH        Default: alloc/ in the data directory.
  -node-class=NAME       Class of the node.
  -node-pool=NAME        Pool of the node. Default "default".
  -meta=KEY=VALUE        Meta of the node. Repeatable.
  -network-interface=IF  Interface whose address tasks get.
  -simulate=FILE         Simulated nodes as described in FILE, instead of this machine.
  -simulate-beside       Run the simulated nodes in addition to this machine.
`

// flags are the command line: files, and changes that are laid over them.
type flags struct {
	files []string
	dev   bool
	apply []func(*config.Config)
}

// set adds a flag whose value changes the configuration at path.
func (f *flags) set(fs *flag.FlagSet, name, path string, isBool bool, set func(*config.Config, string) error) {
	fs.Var(&flagValue{isBool: isBool, set: func(v string) error {
		if err := set(&config.Config{}, v); err != nil {
			return err
		}
		f.apply = append(f.apply, func(c *config.Config) {
			_ = set(c, v) // it was tried above
			c.Stated(path, name)
		})
		return nil
	}}, name, "")
}

type flagValue struct {
	isBool bool
	set    func(string) error
}

func (v *flagValue) String() string     { return "" }
func (v *flagValue) Set(s string) error { return v.set(s) }
func (v *flagValue) IsBoolFlag() bool   { return v.isBool }

// parseFlags reads the command line. flag.ErrHelp means that help was requested.
func parseFlags(args []string) (*flags, error) {
	f := &flags{}
	fs := flag.NewFlagSet("agent", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	fs.Var(&flagValue{set: func(v string) error { f.files = append(f.files, v); return nil }}, "config", "")
	fs.BoolVar(&f.dev, "dev", false, "")

	text := func(name, path string, at func(*config.Config) *string) {
		f.set(fs, name, path, false, func(c *config.Config, v string) error { *at(c) = v; return nil })
	}
	yes := func(name, path string, at func(*config.Config) *bool) {
		f.set(fs, name, path, true, func(c *config.Config, v string) error {
			b, err := strconv.ParseBool(v)
			*at(c) = b
			return err
		})
	}
	number := func(name, path string, at func(*config.Config) *int) {
		f.set(fs, name, path, false, func(c *config.Config, v string) error {
			n, err := strconv.Atoi(v)
			if err != nil {
				return errors.New("must be a whole number")
			}
			*at(c) = n
			return nil
		})
	}
	yes("server", "server.enabled", func(c *config.Config) *bool { return &c.Server.Enabled })
	yes("client", "client.enabled", func(c *config.Config) *bool { return &c.Client.Enabled })
	text("bind", "bind_addr", func(c *config.Config) *string { return &c.BindAddr })
	yes("insecure", "insecure", func(c *config.Config) *bool { return &c.Insecure })
	number("http-port", "ports.http", func(c *config.Config) *int { return &c.Ports.HTTP })
	number("rpc-port", "ports.rpc", func(c *config.Config) *int { return &c.Ports.RPC })
	text("data-dir", "data_dir", func(c *config.Config) *string { return &c.DataDir })
	text("region", "region", func(c *config.Config) *string { return &c.Region })
	text("dc", "datacenter", func(c *config.Config) *string { return &c.Datacenter })
	text("node", "name", func(c *config.Config) *string { return &c.Name })
	text("log-level", "log_level", func(c *config.Config) *string { return &c.Logging.LogLevel })
	yes("log-json", "log_json", func(c *config.Config) *bool { return &c.Logging.LogJSON })
	yes("log-include-location", "log_include_location", func(c *config.Config) *bool { return &c.Logging.LogLocation })
	number("serf-port", "ports.serf", func(c *config.Config) *int { return &c.Ports.Serf })
	number("serf-wan-port", "ports.serf_wan", func(c *config.Config) *int {
		if c.Ports.SerfWAN == nil {
			c.Ports.SerfWAN = new(int)
		}
		return c.Ports.SerfWAN
	})
	number("bootstrap-expect", "server.bootstrap_expect", func(c *config.Config) *int {
		c.Server.BootstrapExpect = new(int) // not that of a default
		return c.Server.BootstrapExpect
	})
	number("retry-max", "server.server_join.retry_max", func(c *config.Config) *int { return &c.Server.Join.RetryMax })
	yes("rejoin", "server.rejoin_after_leave", func(c *config.Config) *bool { return &c.Server.RejoinAfterLeave })
	text("encrypt", "server.encrypt", func(c *config.Config) *string { return &c.Server.Encrypt })
	text("state-dir", "client.state_dir", func(c *config.Config) *string { return &c.Client.StateDir })
	text("alloc-dir", "client.alloc_dir", func(c *config.Config) *string { return &c.Client.AllocDir })
	text("node-class", "client.node_class", func(c *config.Config) *string { return &c.Client.Class })
	text("node-pool", "client.node_pool", func(c *config.Config) *string { return &c.Client.Pool })
	text("network-interface", "client.network_interface", func(c *config.Config) *string { return &c.Client.NetworkInterface })
	text("simulate", "client.simulate", func(c *config.Config) *string { return &c.Client.Simulate })
	yes("simulate-beside", "client.simulate_beside", func(c *config.Config) *bool { return &c.Client.SimulateBeside })
	f.lists(fs)
	if err := fs.Parse(args); err != nil {
		return nil, ui.FlagError(fs, err, structs.Nearest)
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("the agent takes no arguments, but was given %q", fs.Args())
	}
	return f, nil
}

// lists adds the flags that may be given many times.
func (f *flags) lists(fs *flag.FlagSet) {
	f.set(fs, "servers", "client.servers", false, func(c *config.Config, v string) error {
		for addr := range strings.SplitSeq(v, ",") {
			c.Client.Servers = append(c.Client.Servers, strings.TrimSpace(addr))
		}
		return nil
	})
	more := func(name, path string, at func(*config.Config) *[]string) {
		f.set(fs, name, path, false, func(c *config.Config, v string) error {
			*at(c) = append(*at(c), v)
			return nil
		})
	}
	more("join", "server.server_join.start_join", func(c *config.Config) *[]string { return &c.Server.Join.StartJoin })
	more("retry-join", "server.server_join.retry_join", func(c *config.Config) *[]string { return &c.Server.Join.RetryJoin })
	more("retry-join-wan", "server.server_join.retry_join_wan", func(c *config.Config) *[]string { return &c.Server.Join.RetryJoinWAN })
	f.set(fs, "retry-interval", "server.server_join.retry_interval", false, func(c *config.Config, v string) error {
		d, err := time.ParseDuration(v)
		if err != nil {
			return errors.New("must be a duration such as 30s")
		}
		c.Server.Join.RetryInterval = d
		return nil
	})
	f.set(fs, "meta", "client.meta", false, func(c *config.Config, v string) error {
		key, value, ok := strings.Cut(v, "=")
		if !ok || key == "" {
			return errors.New("must be KEY=VALUE")
		}
		if c.Client.Meta == nil {
			c.Client.Meta = map[string]string{}
		}
		c.Client.Meta[key] = value
		return nil
	})
}

// load makes the configuration of files and flags, checked.
func (f *flags) load() (*config.Config, config.Problems, error) {
	c := config.Default()
	if f.dev {
		c.SetDev()
	}
	warnings, err := c.Load(f.files...)
	var problems config.Problems
	if err != nil && !errors.As(err, &problems) {
		return nil, warnings, err
	}
	if f.dev {
		c.EnableBoth()
	}
	for _, apply := range f.apply {
		apply(c)
	}
	if err != nil {
		var more config.Problems
		errors.As(c.ValidateRead(), &more)
		return nil, warnings, append(problems, more...)
	}
	err = c.Validate()
	if err == nil {
		err = checkReachable(c)
	}
	if err == nil {
		err = checkExposed(c)
	}
	return c, warnings, err
}

// CheckConfig returns what an agent with the configuration in files or directories would warn of, and why it would not start.
// The error is config.Problems, or one of reading. Where the configuration is in order, the certificates that it names are read, too.
func CheckConfig(paths ...string) (config.Problems, error) {
	c, warnings, err := (&flags{files: paths}).load()
	if err != nil || !c.TLS.On() {
		return warnings, err
	}
	o, err := tlsOptions(c)
	if err != nil {
		return warnings, err
	}
	read, err := wire.LoadTLS(o, hclog.NewNullLogger())
	if err != nil {
		return warnings, err
	}
	for _, w := range read.Warnings() {
		warnings = append(warnings, config.Problem{Text: w})
	}
	return warnings, nil
}
