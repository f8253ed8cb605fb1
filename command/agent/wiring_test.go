package agent

import (
	"encoding/json"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/client/driver/rawexec"
	"github.com/nomadish/nomadish/client/users"
	"github.com/nomadish/nomadish/command/agent/config"
	"github.com/nomadish/nomadish/nomadish/endpoint/job"
	"github.com/nomadish/nomadish/nomadish/endpoint/node"
	"github.com/nomadish/nomadish/nomadish/gc"
	"github.com/nomadish/nomadish/nomadish/heartbeat"
	"github.com/nomadish/nomadish/nomadish/queue"
	"github.com/nomadish/nomadish/nomadish/raftnode"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

func TestParseJob(t *testing.T) {
	const job = `
variable "n" { default = "x" }
job "a" {
  type = "batch"
  group "g" {
    task "t" {
      driver = "raw_exec"
      config { command = var.n }
    }
  }
}`
	parseJob := newParser(config.Default().Limits)
	answer, err := parseJob(t.Context(), job, `n = "true"`, false)
	if err != nil {
		t.Fatal(err)
	}
	var parsed structs.Job
	if err := json.Unmarshal(answer.Job, &parsed); err != nil {
		t.Fatal(err)
	}
	if got := parsed.TaskGroups[0].Tasks[0].Config["command"]; got != "true" || parsed.ID != "a" {
		t.Errorf("command %v of %q", got, parsed.ID)
	}
	f := func(source, want string) {
		t.Helper()
		_, err := parseJob(t.Context(), source, "", true)
		if err == nil || !strings.Contains(err.Error(), want) || structs.CodeOf(err) != structs.CodeBadRequest {
			t.Errorf("%s: %v, want %s", source, err, want)
		}
	}
	f("jbo \"a\" {}", "job.nomad.hcl:1")
	f(strings.Replace(job, `"x"`, `file("/etc/passwd")`, 1), "job.nomad.hcl:2")
}

func TestClientConfig(t *testing.T) {
	layouts := filepath.Join(t.TempDir(), "shapes.hcl")
	if err := os.WriteFile(layouts, []byte("shape \"s\" {\n  count = 3\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	_, err := cfg.Merge("c.hcl", []byte(`
datacenter = "dc3"
name       = "n1"
client {
  node_class      = "big"
  simulate        = "`+layouts+`"
  simulate_beside = true
  meta            = { rack = "r1" }
  gc_max_allocs   = 9
  reserved {
    cpu            = 100
    memory         = 200
    disk           = 300
    cores          = "0-1,3"
    reserved_ports = "22"
  }
  slots {}
  users {
    allowed         = ["1000-1999"]
    denied          = ["root"]
    alloc_group_min = 7
    alloc_group_max = 9
  }
  options = {
    "user.denylist"        = "daemon, 5"
    "user.checked_drivers" = "raw_exec"
  }
  host_volume "v" {
    path      = "/data/"
    read_only = true
  }
}`))
	if err != nil {
		t.Fatal(err)
	}
	c, err := clientConfig(cfg, clientDirs{"/s", "/a"}, []string{"x:1"}, "h:1", hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	for what, good := range map[string]bool{
		"slots":    reflect.DeepEqual(c.Node.Slots, map[string]int{"batch": 0}),
		"node":     c.Node.Datacenter == "dc3" && c.Node.Name == "n1" && c.Node.Class == "big" && c.Node.Meta["rack"] == "r1" && c.Region == "global",
		"place":    c.StateDir == "/s" && c.AllocDir == "/a" && c.HTTPAddr == "h:1" && c.Servers[0] == "x:1",
		"reserved": c.Machine.Reserved.Cpu.CpuShares == 100 && c.Machine.Reserved.Memory.MemoryMB == 200 && c.Machine.Reserved.Disk.DiskMB == 300,
		"cores":    reflect.DeepEqual(c.Machine.Reserved.Cpu.ReservedCpuCores, []uint16{0, 1, 3}) && c.Machine.Reserved.Networks.ReservedHostPorts == "22",
		"volume":   *c.Machine.HostVolumes["v"] == structs.HostVolumeInfo{Name: "v", Path: "/data", ReadOnly: true},
		"simulate": len(c.Simulate) == 1 && c.Simulate[0].Count == 3 && c.SimulateBeside,
		"gc":       c.GC.MaxAllocs == 9,
		"groups":   c.AllocGroups.Min == 7 && c.AllocGroups.Max == 9,
		"users": c.Users.Allowed.HasID(1500) && !c.Users.Allowed.HasID(2000) && c.Users.Denied.Has(users.User{Name: "root"}) &&
			c.Users.DeniedBy["raw_exec"].HasID(5) && c.Users.DeniedBy["raw_exec"].Named() && len(c.Users.DeniedBy) == 1,
	} {
		if !good {
			t.Errorf("%s: %+v", what, c)
		}
	}
	cfg.Client.Simulate = "/nowhere.hcl"
	if _, err := clientConfig(cfg, clientDirs{}, nil, "", hclog.NewNullLogger()); err == nil || !strings.Contains(err.Error(), "/nowhere.hcl") {
		t.Errorf("missing shapes: %v", err)
	}
}

func TestParseCores(t *testing.T) {
	f := func(s string, want ...uint16) {
		t.Helper()
		if got, err := parseCores(s); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v %v", s, got, err)
		}
	}
	f("")
	f("2", 2)
	f("0-3, 6", 0, 1, 2, 3, 6)
	f("6,1-2,2-3", 1, 2, 3, 6)
	for _, bad := range []string{"x", "3-1", "-1", "1-", "70000", "1-70000", "1.5"} {
		if got, err := parseCores(bad); err == nil {
			t.Errorf("%q: taken as %v", bad, got)
		}
	}
}

func TestRawExecEnabled(t *testing.T) {
	f := func(src string, dev, want bool) {
		t.Helper()
		c := config.Default()
		c.Dev = dev
		if _, err := c.Merge("c.hcl", []byte(src)); err != nil {
			t.Fatal(err)
		}
		if got := rawExecEnabled(c); got != want {
			t.Errorf("%s dev=%v: %v", src, dev, got)
		}
	}
	f("", false, false)
	f("", true, true)
	f("plugin \"raw_exec\" {\n config { enabled = true }\n}", false, true)
	f(`plugin "raw_exec" { config = { enabled = "true" } }`, false, true)
	f("plugin \"raw_exec\" {\n config { enabled = false }\n}", true, false)
	f("client {\n options = { \"driver.raw_exec.enable\" = \"1\" }\n}", false, true)
	f("client {\n options {\n \"driver.raw_exec.enable\" = \"false\"\n }\n}", true, false)
	// What a node without it says can be taken over as it is.
	reported := rawexec.New(nil, rawexec.Options{}).Fingerprint(t.Context()).Description
	f(regexp.MustCompile(`plugin "raw_exec" .* }`).FindString(reported), false, true)
}

func TestRawExecOptions(t *testing.T) {
	cfg := config.Default()
	if _, err := cfg.Merge("a.hcl", []byte(`plugin "raw_exec" {
  config {
    allow_new_privs       = true
    allow_cgroup_override = true
    denied_envvars        = ["AWS_*"]
    denied_host_uids      = "0,10-20"
    denied_host_gids      = 30
  }
}`)); err != nil {
		t.Fatal(err)
	}
	o, err := rawExecOptions(cfg, true)
	if err != nil || !o.Enabled || !o.AllowNewPrivs || !o.AllowCgroupOverride || !o.DeniedUIDs.HasID(15) || o.DeniedUIDs.HasID(30) || !o.DeniedGIDs.HasID(30) || len(o.DeniedEnv) != 1 {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err = rawExecOptions(config.Default(), false); err != nil || o.AllowNewPrivs || o.AllowCgroupOverride || o.Enabled {
		t.Errorf("by default: %+v, %v", o, err)
	}
}

// TestMakeDataDir: users of tasks can pass a data_dir that the agent makes; one that is there is left as it is.
func TestMakeDataDir(t *testing.T) {
	base := t.TempDir()
	there := filepath.Join(base, "there")
	if err := os.Mkdir(there, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		dir    string
		client bool
		want   os.FileMode // 0: it is not made
	}{
		{filepath.Join(base, "a", "new"), true, 0o711}, {there, true, 0o700}, {filepath.Join(base, "server"), false, 0},
	} {
		cfg := config.Default()
		cfg.DataDir, cfg.Client.Enabled = row.dir, row.client
		if err := makeDataDir(cfg); err != nil {
			t.Error(err)
		}
		info, err := os.Stat(row.dir)
		if (err == nil) != (row.want != 0) || err == nil && info.Mode().Perm() != row.want {
			t.Errorf("%s: %v, %v, want %o", row.dir, info, err, row.want)
		}
	}
}

func TestRawExecLimits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "executor")
	f := func(src, parent string, pids int, want string) {
		t.Helper()
		c := config.Default()
		if _, err := c.Merge("c.hcl", []byte(src)); err != nil {
			t.Fatal(err)
		}
		got, err := rawExecLimits(c, dir)
		switch {
		case want != "":
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", src, err)
			}
		case err != nil || got.Pids != pids || (got.Parent == "") != (got.Reason != "") || path.Dir(got.Parent) != parent:
			t.Errorf("%s: %+v, %v", src, got, err)
		}
	}
	f("", "nomadish.slice", 0, "")
	f(`client { cgroup_parent = "/a/b/" }`, "a/b", 0, "")
	f(`plugin "raw_exec" { config = { pids_limit = 77 } }`, "nomadish.slice", 77, "")
	f(`plugin "raw_exec" { config = { pids_limit = "-1" } }`, "nomadish.slice", -1, "")
	f(`plugin "raw_exec" { config = { pids_limit = -2 } }`, "", 0, "pids_limit -2")
	f(`plugin "raw_exec" { config = { no_cgroups = false } }`, "nomadish.slice", 0, "")
	f(`plugin "raw_exec" { config = { no_cgroups = true } }`, ".", 0, "")
}

func TestLocalAddr(t *testing.T) {
	for bound, want := range map[string]string{
		"0.0.0.0:1": "127.0.0.1:1", "[::]:1": "[::1]:1", "10.0.0.1:1": "10.0.0.1:1", "host:1": "host:1", "odd": "odd",
	} {
		if got := localAddr(bound); got != want {
			t.Errorf("%s: %s, want %s", bound, got, want)
		}
	}
}

// serverConfig carries over what is stated and keeps the server's defaults.
func TestServerConfig(t *testing.T) {
	cfg := config.Default()
	_, err := cfg.Merge("c.hcl", []byte(`
region    = "eu"
name      = "s1"
data_dir  = "/d"
bind_addr = "0.0.0.0"
ports { rpc = 0 }
advertise { rpc = "10.0.0.9" }
limits {
  rpc_max_conns_per_client  = 3
  node_max_message_bytes    = 2097152
  node_max_bytes_per_second = 70000
}
server {
  enabled             = true
  bootstrap_expect    = 3
  num_schedulers      = 0
  raft_multiplier     = 2
  heartbeat_grace     = "9s"
  max_registering     = 9
  job_gc_threshold    = "1h"
  job_max_source_size = "2MB"
  job_max_size        = "1MiB"
  raft_trailing_logs  = 77
  encrypt             = "MDEyMzQ1Njc4OWFiY2RlZg=="
  retry_join          = ["10.0.0.1"]
  server_join {
    retry_join     = ["10.0.0.2:7"]
    retry_interval = "3s"
    retry_join_wan = ["10.1.0.1"]
  }
  default_scheduler_config {
    scheduler_algorithm = "spread"
  }
}
autopilot { cleanup_dead_servers = false }`))
	if err != nil {
		t.Fatal(err)
	}
	c, err := serverConfig(cfg, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	for what, good := range map[string]bool{
		"who":     c.Region == "eu" && c.Name == "s1" && c.Datacenter == "dc1" && c.DataDir == "/d",
		"address": c.Port.Addr == "0.0.0.0:0" && c.Port.Advertise == "10.0.0.9:0",
		"raft":    c.Membership.Expect == 3 && c.Raft.Election == 800*time.Millisecond && c.Raft.TrailingLogs == 77,
		"workers": c.NumSchedulers == 0 && len(c.EnabledSchedulers) == 4,
		"clocks":  c.Heartbeats.Grace == 9*time.Second && c.GC.Job == time.Hour && c.GC.Eval == time.Hour,
		"gossip": c.Membership.LAN.Addr == "0.0.0.0:4648" && strings.HasSuffix(c.Membership.LAN.Advertise, ":4648") && string(c.Membership.Key) == "0123456789abcdef" &&
			slices.Equal(c.Membership.LAN.Retry, []string{"10.0.0.1", "10.0.0.2:7"}) && c.Membership.LAN.RetryInterval == 3*time.Second,
		"regions":   c.Membership.WAN.Addr == "0.0.0.0:4649" && strings.HasSuffix(c.Membership.WAN.Advertise, ":4649") && slices.Equal(c.Membership.WAN.Retry, []string{"10.1.0.1"}),
		"autopilot": !c.Autopilot.CleanupDeadServers && c.Autopilot.MinQuorum == 3 && c.Autopilot.ServerStabilizationTime == 10*time.Second,
		"limits":    c.Nodes.MaxRegistering == 9 && c.Port.MaxConnsPerClient == 3 && c.Nodes.MaxMessage == 2<<20 && c.Nodes.MaxRate == 70_000 && c.Jobs.MaxSource == 2_000_000 && c.Jobs.MaxSize == 1<<20 && c.Jobs.MaxCount == 50_000,
		"scheduler": c.DefaultSchedule.SchedulerAlgorithm == "spread" && c.DefaultSchedule.NodeLimitForFeasibilityChecks == 100,
	} {
		if !good {
			t.Errorf("%s: %+v", what, c)
		}
	}
	f := func(serf int, wan *int, advertise, bound, reached string) {
		t.Helper()
		cfg := config.Default()
		cfg.BindAddr, cfg.Ports.Serf, cfg.Ports.SerfWAN, cfg.Advertise.Serf = "127.0.0.1", serf, wan, advertise
		c, err := serverConfig(cfg, hclog.NewNullLogger())
		if err != nil || c.Membership.WAN.Addr != bound || c.Membership.WAN.Advertise != reached {
			t.Errorf("serf %d, serf_wan %v, advertised %q: bound to %q, reached at %q, %v", serf, wan, advertise, c.Membership.WAN.Addr, c.Membership.WAN.Advertise, err)
		}
	}
	own, off := 7, -1
	f(4648, nil, "", "127.0.0.1:4649", "")
	f(4648, &own, "10.0.0.7:99", "127.0.0.1:7", "10.0.0.7:7")
	f(4648, &off, "", "", "")
	f(0, nil, "", "", "") // agents with ports of their own do not meet at the default one
	f(5000, &own, "", "127.0.0.1:7", "")
	cfg.SetDev()
	cfg.Advertise.RPC = ""
	if c, err = serverConfig(cfg, hclog.NewNullLogger()); err != nil || c.Membership.WAN.Addr != "" || c.DataDir != "" || c.Port.Addr != "127.0.0.1:0" || c.Port.Advertise != "" {
		t.Errorf("-dev: %+v %v", c, err)
	}
	for _, f := range [][3]string{{"0.0.0.0:0", "10.0.0.9:55", "0.0.0.0:55"}, {"127.0.0.1:4647", "1.1.1.1:9", "127.0.0.1:4647"}} {
		if got := bound(f[0], f[1]); got != f[2] {
			t.Errorf("bound %s %s: %s", f[0], f[1], got)
		}
	}
}

// A real server and simulated nodes in one process: they find each other, the
// API shows them, and nothing of them is left.
func TestRealAgent(t *testing.T) {
	layouts := filepath.Join(t.TempDir(), "shapes.hcl")
	if err := os.WriteFile(layouts, []byte("shape \"s\" {\n  count = 3\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := launchParts(t, realParts(), "-dev", "-http-port=0", "-rpc-port=0", "-simulate="+layouts, "-node=n1")
	c, err := nomad.NewClient(&nomad.Config{Address: "http://" + r.addr, HttpClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	if err != nil {
		t.Fatal(err)
	}
	ready := func() int {
		nodes, _, err := c.Nodes().List(nil)
		if err != nil {
			return 0 // no leader yet
		}
		n := 0
		for _, node := range nodes {
			if node.Status == structs.NodeStatusReady && strings.HasPrefix(node.Name, "s-") {
				n++
			}
		}
		return n
	}
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	late := time.After(2 * time.Minute)
	for ready() < 3 {
		select {
		case <-ticker.C:
		case <-late:
			t.Fatalf("the nodes did not come:\n%s", r.out)
		}
	}
	leader, err := c.Status().Leader()
	if err != nil || leader == "" || strings.HasSuffix(leader, ":0") {
		t.Errorf("leader %q %v", leader, err)
	}
	members, err := c.Agent().Members()
	if err != nil || len(members.Members) != 1 || members.Members[0].Name != "n1.global" || members.Members[0].Tags["role"] != "nomad" {
		t.Errorf("members %+v %v", members, err)
	}
	name, err := c.Agent().NodeName()
	if err != nil || name != "n1.global" {
		t.Errorf("self %q %v", name, err)
	}
	summary, _, err := c.Operator().MetricsSummary(nil)
	if err != nil || len(summary.Gauges) == 0 {
		t.Errorf("metrics %+v %v", summary, err)
	}
	r.signals <- syscall.SIGTERM
	if code := <-r.code; code != 0 {
		t.Errorf("exit %d: %s", code, r.err)
	}
}

// TestServerOfAgentThatIsToldNothing: these are the values that operators get. They stand in package config alone.
func TestServerOfAgentThatIsToldNothing(t *testing.T) {
	cfg := config.Default()
	c, err := serverConfig(cfg, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	cfg.SetDev()
	dev, err := serverConfig(cfg, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	const ms = time.Millisecond
	clocks := raftnode.Options{Heartbeat: 400 * ms, Election: 400 * ms, Lease: 300 * ms, Commit: 50 * ms}
	clocks.Disk, clocks.LogReserve, clocks.ApplyTimeout = structs.DiskLimit{MB: 64, Percent: 5}, 32<<20, 30*time.Second
	clocks.SnapshotInterval, clocks.SnapshotThreshold, clocks.TrailingLogs = 2*time.Minute, 8192, 10240
	quick := clocks
	quick.Heartbeat, quick.Election, quick.Lease, quick.Commit, quick.LogReserve = 50*ms, 50*ms, 50*ms, 5*ms, 0
	for what, pair := range map[string][2]any{
		"raft":       {c.Raft, clocks},
		"raft, -dev": {dev.Raft, quick},
		"state":      {c.State, state.Options{EventBuffer: 100_000, HistoryMax: 100_000, JobVersions: 6}},
		"queue":      {c.Queue, queue.Options{NackTimeout: time.Minute, DeliveryLimit: 3}},
		"heartbeats": {c.Heartbeats, heartbeat.Options{MinTTL: 3 * time.Second, Grace: 3 * time.Second, Failover: 30 * time.Second, MaxPerSecond: 250}},
		"gc": {c.GC, gc.Options{
			Interval: 5 * time.Minute, Eval: time.Hour, BatchEval: 24 * time.Hour, Job: 4 * time.Hour, Node: 24 * time.Hour, History: 90 * 24 * time.Hour,
		}},
		"jobs":      {c.Jobs, job.Config{MaxCount: 50_000, DefaultPriority: 50, MaxPriority: 100, MaxSource: 1 << 20, MaxSize: 4 << 20}},
		"nodes":     {c.Nodes, node.Config{MaxRegistering: 256, MaxMessage: 1 << 20, MaxRate: 1 << 20}},
		"port":      {[]any{c.Port.Addr, c.Port.MaxConnsPerClient, c.Port.HandshakeTimeout}, []any{"127.0.0.1:4647", 100, 5 * time.Second}},
		"gossip":    {[]any{c.Membership.LAN.Addr, c.Membership.WAN.Addr, c.Membership.Expect, c.ClientGossip.On}, []any{"127.0.0.1:4648", "127.0.0.1:4649", 1, false}},
		"autopilot": {c.Autopilot, structs.DefaultAutopilotConfiguration()},
		"workers":   {[]any{c.NumSchedulers, c.EnabledSchedulers}, []any{runtime.NumCPU(), []string{"service", "batch", "system", "sysbatch"}}},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: %+v, want %+v", what, pair[0], pair[1])
		}
	}
}
