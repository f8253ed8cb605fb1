package config

import (
	"cmp"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/nomadish/nomadish/client/cgroup"
	"github.com/nomadish/nomadish/structs"
)

// checker collects what is wrong, each at the place where it was last stated.
type checker struct {
	c        *Config
	read     bool // only of what files state and could be read
	problems Problems
}

func (k *checker) bad(path, format string, args ...any) {
	p, stated := k.c.Sources.origins[path]
	if k.read && (!stated || slices.ContainsFunc(k.c.Sources.unread, func(other string) bool { return within(path, other) || within(other, path) })) {
		return
	}
	p.Text = path + fmt.Sprintf(format, args...)
	k.problems = append(k.problems, p)
}

// within reports whether a path is another one or lies in it.
func within(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Stated records that a flag set the value at path, for messages.
func (c *Config) Stated(path, flag string) {
	if c.Sources.origins == nil {
		c.Sources.origins = map[string]Problem{}
	}
	c.Sources.origins[path] = Problem{File: "flag -" + flag}
}

// Validate returns all that keeps the agent from starting with c. The error is Problems.
func (c *Config) Validate() error { return (&checker{c: c}).all() }

// ValidateRead reports, after Load has returned Problems, what is wrong with the values that could be read, so that everybody sees all
// problems of their files at once. What is not stated, or stated in a block of which something could not be read, may be missing for
// that reason alone: nothing is reported about it. The error is Problems.
func (c *Config) ValidateRead() error {
	if c.Sources.unparsed {
		return nil
	}
	return (&checker{c: c, read: true}).all()
}

func (k *checker) all() error {
	k.basics()
	k.network()
	k.server()
	k.client()
	k.users()
	k.clientGossip()
	k.tls()
	k.http()
	k.acl()
	slices.SortStableFunc(k.problems, func(a, b Problem) int { return strings.Compare(a.Text, b.Text) })
	return k.problems.Err()
}

// acl refuses access control, which is not there, and its error names what keeps others out until then.
func (k *checker) acl() {
	c := k.c
	if !c.ACL.Enabled {
		return
	}
	hint := `other machines can reach it: bind_addr = "127.0.0.1" keeps them out, or tls with http, rpc and verify_https_client those without a certificate (docs/guides/tls.md)`
	switch t := c.TLS; {
	case IsLoopback(c.BindAddr) && !c.onLoopback():
		hint = "other machines can reach it at the addresses that the block addresses names besides loopback; remove those, or require certificates: tls with http, rpc and verify_https_client (docs/guides/tls.md)"
	case c.onLoopback():
		hint = "it listens on loopback only, so that nobody but the users of this machine reaches it, who all may do anything"
	case t.HTTP && t.VerifyHTTPSClient && t.RPC && !t.RPCUpgradeMode:
		hint = "its tls block requires a certificate of every caller, and the role in the certificate decides what the caller may do"
	}
	k.bad("acl.enabled", ": access control is not there yet, and an agent that should have it does not start without. To run it without, leave the block acl out: %s", hint)
}

// onLoopback reports whether all that the agent opens can be reached from this machine only.
func (c *Config) onLoopback() bool {
	a := c.Addresses
	for _, hosts := range []string{a.HTTP, a.RPC, a.Serf, a.SerfWAN, a.ClientGossip} {
		if hosts == "" {
			hosts = c.BindAddr
		}
		for _, host := range strings.Fields(hosts) {
			if !IsLoopback(host) {
				return false
			}
		}
	}
	return true
}

// IsLoopback reports whether only this machine can reach what listens on a host.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (k *checker) basics() {
	c := k.c
	if !c.Server.Enabled && !c.Client.Enabled {
		k.bad("server.enabled", ", client.enabled: neither is set; use -dev, -server or -client, or enable one in a file")
	}
	levels := []string{"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "OFF"}
	if !slices.Contains(levels, strings.ToUpper(c.Logging.LogLevel)) {
		k.bad("log_level", " %q: must be one of %s", c.Logging.LogLevel, strings.Join(levels, ", "))
	}
	if !structs.ValidRegion(c.Region) {
		k.bad("region", " %q: must be 1 to 128 letters, digits, dashes or underscores", c.Region)
	}
	if c.Datacenter == "" || strings.ContainsAny(c.Datacenter, " \t\n\x00*") {
		k.bad("datacenter", " %q: must be a name without spaces and *", c.Datacenter)
	}
	if strings.ContainsAny(c.Name, " \t\n\x00") {
		k.bad("name", " %q: must not contain spaces", c.Name)
	}
	if c.DataDir == "" && !c.Dev && (c.Server.Enabled || !c.SimulatedOnly()) {
		k.bad("data_dir", ": missing; name a directory for what must outlive the agent (or run with -dev)")
	}
	for path, dir := range map[string]string{
		"data_dir": c.DataDir, "server.data_dir": c.Server.DataDir, "client.state_dir": c.Client.StateDir, "client.alloc_dir": c.Client.AllocDir,
	} {
		if dir != "" && !filepath.IsAbs(dir) {
			k.bad(path, " %q: must be an absolute path", dir)
		}
	}
	t := c.Telemetry
	if t.InMemoryInterval <= 0 || t.InMemoryRetention < t.InMemoryInterval || t.Interval <= 0 {
		k.bad("telemetry", ": the intervals must be positive, and in_memory_retention_period at least in_memory_collection_interval")
	}
	for _, rule := range t.PrefixFilter {
		if len(rule) < 2 || (rule[0] != '+' && rule[0] != '-') {
			k.bad("telemetry.prefix_filter", " %q: must begin with + or -", rule)
		}
	}
	if t.MaxSeries < 0 || t.MaxSeries > maxSeries {
		k.bad("telemetry.max_series", " %d: must be from 0 to %d", t.MaxSeries, maxSeries)
	}
	for name, addr := range map[string]string{"telemetry.statsd_address": t.Statsd, "telemetry.statsite_address": t.Statsite} {
		if _, port, err := net.SplitHostPort(addr); addr != "" && (err != nil || port == "") {
			k.bad(name, " %q: must be host:port", addr)
		}
	}
	l := c.Limits
	if l.HTTPMaxConns < 0 || l.RPCMaxConns < 0 || l.RPCHandshakeTimeout < 0 || l.HTTPSHandshakeTimeout < 0 || l.HTTPMaxBody < 0 || l.HTTPBodyTimeout < 0 {
		k.bad("limits", ": must not be negative")
	}
	if l.NodeMaxMessage < minNodeMessage || l.NodeMaxMessage > maxNodeMessage {
		k.bad("limits.node_max_message_bytes", " %d: must be from %d to %d; clients send up to the least of that", l.NodeMaxMessage, minNodeMessage, maxNodeMessage)
	}
	if l.NodeMaxRate != 0 && (l.NodeMaxRate < minNodeRate || l.NodeMaxRate > maxNodeRate) {
		k.bad("limits.node_max_bytes_per_second", " %d: must be 0, for no bound, or from %d to %d", l.NodeMaxRate, minNodeRate, maxNodeRate)
	}
	if l.JobParseProcesses < 1 || l.JobParseWaiting < 1 {
		k.bad("limits", ": job_parse_max_processes and job_parse_max_waiting must be at least 1")
	}
	if l.LogMonitors < 1 || l.LogMonitors > maxLogMonitors {
		k.bad("limits.log_monitor_max_streams", " %d: must be from 1 to %d", l.LogMonitors, maxLogMonitors)
	}
	if l.JobParseCPU < minParseCPU || l.JobParseMemory < minParseMemory {
		k.bad("limits", ": job_parse_cpu_time must be at least %s, and job_parse_memory_bytes at least %d", minParseCPU, minParseMemory)
	}
}

// maxLogMonitors is the most that `limits` may allow: each may hold half a mebibyte.
const maxLogMonitors = 1024

// maxSeries is what `telemetry { max_series }` may be at most: that many series are some 200 MiB of text.
const maxSeries = 1_000_000

// What `limits` may state about nodes, in bytes, and in bytes per second.
const (
	minNodeMessage, maxNodeMessage = 1 << 20, 64 << 20
	minNodeRate, maxNodeRate       = 64 << 10, 1 << 30
)

// What a process that parses a job file needs at least: the program itself has about 20 MiB, and starts in about 10 ms of CPU time.
const (
	minParseCPU    = 100 * time.Millisecond
	minParseMemory = 64 << 20
)

func (k *checker) network() {
	c := k.c
	k.host("bind_addr", c.BindAddr)
	for path, host := range map[string]string{
		"addresses.http": c.Addresses.HTTP, "addresses.rpc": c.Addresses.RPC, "addresses.serf": c.Addresses.Serf, "addresses.serf_wan": c.Addresses.SerfWAN,
		"addresses.client_gossip": c.Addresses.ClientGossip,
	} {
		for _, one := range strings.Fields(host) {
			k.host(path, one)
		}
	}
	if len(strings.Fields(c.Addresses.RPC)) > 1 {
		k.bad("addresses.rpc", " %q: must be one address", c.Addresses.RPC)
	}
	ports := map[string]int{"ports.http": c.Ports.HTTP, "ports.rpc": c.Ports.RPC, "ports.serf": c.Ports.Serf, "ports.client_gossip": c.Ports.ClientGossip}
	for path, port := range ports {
		if port < 0 || port > 65535 {
			k.bad(path, " %d: must be from 0 (any free one) to 65535", port)
		}
	}
	if c.Ports.HTTP != 0 && c.Ports.HTTP == c.Ports.RPC && c.Server.Enabled {
		k.bad("ports.rpc", " %d: is the HTTP port too", c.Ports.RPC)
	}
	if c.Ports.Serf != 0 && (c.Ports.Serf == c.Ports.RPC || c.Ports.Serf == c.Ports.HTTP) && c.Server.Enabled {
		k.bad("ports.serf", " %d: is the HTTP or the RPC port too", c.Ports.Serf)
	}
	k.wanPort()
	for path, hosts := range map[string]string{"addresses.serf": c.Addresses.Serf, "addresses.serf_wan": c.Addresses.SerfWAN} {
		if len(strings.Fields(hosts)) > 1 {
			k.bad(path, " %q: must be one address", hosts)
		}
	}
	if len(strings.Fields(c.Addresses.ClientGossip)) > 1 {
		k.bad("addresses.client_gossip", " %q: must be one address", c.Addresses.ClientGossip)
	}
	for path, addr := range map[string]string{"advertise.http": c.Advertise.HTTP, "advertise.rpc": c.Advertise.RPC, "advertise.serf": c.Advertise.Serf, "advertise.serf_wan": c.Advertise.SerfWAN,
		"advertise.client_gossip": c.Advertise.ClientGossip} {
		if addr == "" {
			continue
		}
		host := addr
		if h, _, err := net.SplitHostPort(addr); err == nil {
			host = h
		}
		k.host(path, host)
		if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
			k.bad(path, " %q: must be an address that others can reach", addr)
		}
	}
}

// wanPort checks the port of the gossip with other regions.
func (k *checker) wanPort() {
	p := &k.c.Ports
	port := k.c.WANPort()
	switch {
	case port < -1 || port > 65535:
		k.bad("ports.serf_wan", " %d: must be from 0 (any free one) to 65535, or -1: no gossip with other regions", port)
	case port > 0 && (port == p.HTTP || port == p.RPC || port == p.Serf) && k.c.Server.Enabled:
		k.bad("ports.serf_wan", " %d: is the HTTP, the RPC or the serf port too (-1 switches the gossip with other regions off)", port)
	}
}

func (k *checker) host(path, host string) {
	switch {
	case strings.Contains(host, "{{"):
		k.bad(path, " %q: templates are not supported yet; write the address", host)
	case host == "" || strings.ContainsAny(host, " /\t\n"):
		k.bad(path, " %q: must be an IP address or a host name", host)
	case strings.Contains(host, ":") && net.ParseIP(strings.Trim(host, "[]")) == nil:
		k.bad(path, " %q: must not have a port; that stands under ports", host)
	}
}

func (k *checker) server() {
	s := &k.c.Server
	if !s.Enabled {
		return
	}
	k.joining()
	k.percent("server.disk_full_percent", s.DiskFullPercent)
	if s.NumSchedulers != nil && (*s.NumSchedulers < 0 || *s.NumSchedulers > 1024) {
		k.bad("server.num_schedulers", " %d: must be from 0 to 1024", *s.NumSchedulers)
	}
	types := []string{structs.JobTypeService, structs.JobTypeBatch, structs.JobTypeSystem, structs.JobTypeSysBatch}
	for _, t := range s.EnabledSchedulers {
		if !slices.Contains(types, t) && t != structs.JobTypeCore {
			k.bad("server.enabled_schedulers", " %q: allowed are %s", t, strings.Join(types, ", "))
		}
	}
	if s.RaftMultiplier < 1 || s.RaftMultiplier > 10 {
		k.bad("server.raft_multiplier", " %d: must be from 1 to 10", s.RaftMultiplier)
	}
	for path, d := range map[string]int64{
		"server.node_gc_threshold": int64(s.NodeGCThreshold), "server.job_gc_interval": int64(s.JobGCInterval),
		"server.job_gc_threshold": int64(s.JobGCThreshold), "server.eval_gc_threshold": int64(s.EvalGCThreshold),
		"server.batch_eval_gc_threshold": int64(s.BatchEvalGCThreshold), "server.heartbeat_grace": int64(s.HeartbeatGrace),
		"server.min_heartbeat_ttl": int64(s.MinHeartbeatTTL), "server.failover_heartbeat_ttl": int64(s.FailoverHeartbeatTTL),
		"server.raft_snapshot_interval": int64(s.RaftSnapshotInterval), "server.event_buffer_size": int64(s.EventBufferSize),
		"server.job_max_count": int64(s.JobMaxCount), "server.job_tracked_versions": int64(s.JobTrackedVersions),
		"server.max_heartbeats_per_second": int64(s.MaxHeartbeatsPerSecond), "server.max_registering": int64(s.MaxRegistering),
	} {
		if d < 0 {
			k.bad(path, ": must not be negative")
		}
	}
	k.priorities()
	if _, err := s.MaxSource(); err != nil {
		k.bad("server.job_max_source_size", " %q: must be a size in bytes such as 1M", s.JobMaxSourceSize)
	}
	if _, err := s.MaxSize(); err != nil {
		k.bad("server.job_max_size", " %q: must be a size in bytes such as 4MiB", s.JobMaxSize)
	}
	k.scheduling()
	k.forecast()
}

// What `forecast` may state: how far a forecast looks at least, and the share of a core that it takes at most, in percent.
const (
	minForecastHorizon = time.Minute
	maxForecastCPU     = 50
)

// forecast checks how the server makes forecasts of the queue.
func (k *checker) forecast() {
	f := &k.c.Server.Forecast
	if f.Horizon != 0 && (f.Horizon < minForecastHorizon || f.Horizon > structs.MaxForecastHorizon) {
		k.bad("server.forecast.horizon", " %s: must be from %s to %s (90 days)", f.Horizon, minForecastHorizon, structs.MaxForecastHorizon)
	}
	if f.CPUPercent < 0 || f.CPUPercent > maxForecastCPU {
		k.bad("server.forecast.cpu_percent", " %g: must be above 0 and at most %d, of one core; enabled = false switches forecasts off", f.CPUPercent, maxForecastCPU)
	}
}

// priorities checks the priorities that jobs have and may state. Nomad takes a job_max_priority of up to 32766; here no job's priority
// is above 100, so that a higher limit would allow what no job can have.
func (k *checker) priorities() {
	def, most := cmp.Or(k.c.Server.JobDefaultPriority, structs.JobDefaultPriority), cmp.Or(k.c.Server.JobMaxPriority, structs.JobMaxPriority)
	switch {
	case def < structs.JobMinPriority || def > structs.JobMaxPriority:
		k.bad("server.job_default_priority", " %d: must be from %d to job_max_priority, which is at most %d", def, structs.JobMinPriority, structs.JobMaxPriority)
	case most > structs.JobMaxPriority:
		k.bad("server.job_max_priority", " %d: must be from job_default_priority (%d) to %d: priorities of jobs are from %d to %d here, also where Nomad takes more",
			most, def, structs.JobMaxPriority, structs.JobMinPriority, structs.JobMaxPriority)
	case most < def:
		k.bad("server.job_max_priority", " %d: must be from job_default_priority (%d) to %d; state a lower job_default_priority too if jobs may have no more", most, def, structs.JobMaxPriority)
	}
}

func (k *checker) percent(path string, v float64) {
	if v < 0 || v > 100 {
		k.bad(path, " %v: must be a percentage", v)
	}
}

// MaxSource is how many bytes of a job's source are kept: job_max_source_size.
func (s *Server) MaxSource() (int, error) {
	n, err := sizeOf(s.JobMaxSourceSize)
	return cmp.Or(n, jobMaxSource), err
}

// MaxSize is how many bytes a job may have: job_max_size.
func (s *Server) MaxSize() (int, error) {
	n, err := sizeOf(s.JobMaxSize)
	return cmp.Or(n, jobMaxSize), err
}

func sizeOf(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := humanize.ParseBytes(text)
	if err == nil && n > 1<<30 {
		return 0, fmt.Errorf("%s: over 1 GiB", text)
	}
	return int(n), err // bounded above
}

// SimulatedOnly reports whether the agent has no node of its own.
func (c *Config) SimulatedOnly() bool {
	return c.Client.Enabled && c.Client.Simulate != "" && !c.Client.SimulateBeside
}

func (k *checker) client() {
	cl := &k.c.Client
	if !cl.Enabled {
		return
	}
	if len(k.c.ServerAddrs())+len(k.c.GossipAddrs()) == 0 && !k.c.Server.Enabled {
		k.bad("client.servers", ": missing; name at least one server (host:port), or a member of the clients' gossip under gossip_join, or enable the server too")
	}
	for path, addrs := range map[string][]string{
		"client.servers": cl.Servers, "client.server_join.start_join": cl.Join.StartJoin, "client.server_join.retry_join": cl.Join.RetryJoin,
	} {
		k.addrs(path, addrs)
	}
	if lo, hi := cl.MinDynamicPort, cl.MaxDynamicPort; lo < 0 || hi < 0 || lo > 65535 || hi > 65535 || (hi != 0 && lo > hi) {
		k.bad("client.min_dynamic_port", ", max_dynamic_port %d to %d: must be a range within 1 to 65535", lo, hi)
	}
	switch {
	case cl.Pool != "" && !structs.ValidNodePool(cl.Pool):
		k.bad("client.node_pool", " %q: must be 1 to 128 letters, digits, dashes or underscores", cl.Pool)
	case cl.Pool == structs.NodePoolAll:
		k.bad("client.node_pool", " %q: every node is in this pool; name another one", cl.Pool)
	}
	if err := structs.CheckNodeMeta(cl.Meta); err != nil {
		k.bad("client.meta", ": the servers do not take it: %v", err)
	}
	k.nodeSlots()
	k.percent("client.gc_disk_usage_threshold", cl.GCDiskUsageThreshold)
	k.percent("client.disk_full_percent", cl.DiskFullPercent)
	for path, n := range map[string]int{
		"client.cpu_total_compute": cl.CPUTotalCompute, "client.memory_total_mb": cl.MemoryTotalMB, "client.disk_total_mb": cl.DiskTotalMB,
		"client.disk_free_mb": cl.DiskFreeMB, "client.gc_max_allocs": cl.GCMaxAllocs, "client.gc_parallel_destroys": cl.GCParallelDestroys,
		"client.reserved.cpu": cl.Reserved.CPU, "client.reserved.memory": cl.Reserved.MemoryMB, "client.reserved.disk": cl.Reserved.DiskMB,
	} {
		if n < 0 {
			k.bad(path, " %d: must not be negative", n)
		}
	}
	for name, v := range cl.HostVolumes {
		if !filepath.IsAbs(v.Path) {
			k.bad("client.host_volume."+name, ": path %q: must be an absolute path", v.Path)
		}
	}
	if cl.CgroupParent != "" {
		if err := cgroup.ValidateParent(strings.Trim(cl.CgroupParent, "/")); err != nil {
			k.bad("client.cgroup_parent", ": %v", err)
		}
	}
	if cl.SimulateBeside && cl.Simulate == "" {
		k.bad("client.simulate_beside", ": has no effect without simulate")
	}
}
