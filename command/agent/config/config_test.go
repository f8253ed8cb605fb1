package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

func merged(t *testing.T, files ...string) *Config {
	t.Helper()
	c := Default()
	for i, src := range files {
		if _, err := c.Merge(string(rune('a'+i))+".hcl", []byte(src)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// The same configuration in HCL and in JSON gives the same values and warnings.
func TestFull(t *testing.T) {
	load := func(name string) (*Config, Problems) {
		t.Helper()
		c := Default()
		warnings, err := c.Load(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
		return c, warnings
	}
	fromHCL, warnings := load("full.hcl")
	c := fromHCL
	for name, good := range map[string]bool{
		"basics":    c.Region == "eu" && c.Datacenter == "dc2" && c.Name == "n1" && c.Logging.LogLevel == "warn" && c.Logging.LogJSON,
		"ports":     c.Ports == Ports{HTTP: 14646, RPC: 0, Serf: structs.DefaultPortSerf, ClientGossip: structs.DefaultPortClientGossip},
		"addresses": c.Addresses.HTTP == "127.0.0.1 ::1" && c.Advertise.RPC == "10.0.0.1:14647",
		"headers":   c.ResponseHeaders["X-Frame-Options"] == "deny",
		"server":    c.Server.Enabled && *c.Server.BootstrapExpect == 3 && *c.Server.NumSchedulers == 0 && c.Server.JobGCThreshold == 90*time.Minute,
		"scheduler": c.Server.DefaultScheduler.SchedulerAlgorithm == "spread" && *c.Server.DefaultScheduler.Preemption.Batch && c.Server.DefaultScheduler.Preemption.System == nil,
		"topology":  reflect.DeepEqual(c.Server.Topology.Level, []TopologyLevel{{"rack", "rack"}}) && len(c.Server.Topology.Levels) == 5,
		"bands": reflect.DeepEqual(c.Server.Scheduling.Bands, [][]int{{1, 40}, {41, 70}, {71, 100}}) && c.Server.Scheduling.KeepWhole &&
			c.Server.Scheduling.Cycle == 30*time.Second && *c.Server.Scheduling.Aging == 0 && *c.Server.Scheduling.Preemption.Service,
		"scheduling":   c.Server.Scheduling.Granularity["cpu"] == 500 && c.Server.Scheduling.ReservationTTL == time.Hour && c.Server.Scheduling.PreferredCells[1] == 8,
		"slots":        reflect.DeepEqual(c.Server.Scheduling.Slots, fullSlots()),
		"calendar":     c.Server.Calendar == Calendar{"Europe/Berlin", "mon 06:00"},
		"client slots": reflect.DeepEqual(c.Client.Slots, map[string]int{"batch": 16, "interactive-light": 8}),
		"client":       c.Client.Enabled && c.Client.Class == "big" && c.Client.SimulateBeside && c.Client.Meta["a.b"] == "5",
		"options":      c.Client.Options["driver.raw_exec.enable"] == "1" && c.Client.Reserved.CPU == 500,
		"volume":       *c.Client.HostVolumes["scratch"] == HostVolume{"/scratch", true},
		"plugin": reflect.DeepEqual(c.Plugins["raw_exec"].Config, map[string]any{"enabled": true}) &&
			reflect.DeepEqual(c.Plugins["docker"].Config, map[string]any{"list": []any{int64(1), "two", map[string]any{"three": nil}}}),
		"limits": c.Limits.HTTPMaxConns == 7 && c.Limits.RPCMaxConns == 100 && c.Limits.HTTPBodyTimeout == 45*time.Second,
		"http":   reflect.DeepEqual(c.HTTP, HTTP{[]string{"nomad.example.com"}, []string{"https://dash.example.com"}}),
	} {
		if !good {
			t.Errorf("%s: wrong in %+v", name, c)
		}
	}
	fromJSON, jsonWarnings := load("full.json")
	fromHCL.Sources.origins, fromJSON.Sources.origins, fromHCL.Sources.Files, fromJSON.Sources.Files = nil, nil, nil, nil
	if !reflect.DeepEqual(fromHCL, fromJSON) {
		t.Errorf("JSON differs:\n%+v\n%+v", fromHCL, fromJSON)
	}
	texts := func(ps Problems) []string {
		var out []string
		for _, p := range ps {
			if p.Line == 0 || !strings.HasPrefix(p.File, "testdata/full.") {
				t.Errorf("warning without a place: %+v", p)
			}
			out = append(out, p.Text)
		}
		slices.Sort(out)
		return out
	}
	var want []string
	for _, name := range []string{"log_file", "plugin.docker", "vault"} {
		want = append(want, name+": accepted, but has no effect yet")
	}
	if got := texts(warnings); !slices.Equal(got, want) {
		t.Errorf("warnings %q", got)
	}
	if got := texts(jsonWarnings); !slices.Equal(got, want) {
		t.Errorf("warnings of JSON %q", got)
	}
}

// Files are laid over each other: values win, maps merge, lists of servers grow,
// other lists are replaced.
func TestMerge(t *testing.T) {
	f := func(path string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	c := merged(t, `
region = "a"
client {
  servers = ["one:1"]
  meta = { x = "1", y = "1" }
  node_class = "c"
}
telemetry { prefix_filter = ["+a", "+b"] }
server { num_schedulers = 4 }
plugin "docker" { config = { a = 1 } }
`, `
client {
  servers = ["two:2"]
  meta { y = "2" }
}
telemetry { prefix_filter = ["-c"] }
plugin "exec" {}
`, `server { num_schedulers = null }`)
	f("region", c.Region, "a")
	f("servers", c.Client.Servers, []string{"one:1", "two:2"})
	f("meta", c.Client.Meta, map[string]string{"x": "1", "y": "2"})
	f("class", c.Client.Class, "c")
	f("prefix_filter", c.Telemetry.PrefixFilter, []string{"-c"})
	f("num_schedulers", *c.Server.NumSchedulers, 4)
	f("plugins", len(c.Plugins), 2)
	f("plugin docker", c.Plugins["docker"].Config, map[string]any{"a": int64(1)})
	f("default", c.Datacenter, "dc1")
}

func TestDirectories(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("b.hcl", `region = "b"`)
	write("a.json", `{"region": "a", "datacenter": "from-a"}`)
	write("notes.txt", `not read`)
	write(".hidden.hcl", `region = "hidden"`)
	write("#saved.hcl", `bad {`)
	if err := os.Mkdir(filepath.Join(dir, "sub.hcl"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := Default()
	if _, err := c.Load(dir); err != nil {
		t.Fatal(err)
	}
	if c.Region != "b" || c.Datacenter != "from-a" || len(c.Sources.Files) != 2 {
		t.Errorf("%q %q %v", c.Region, c.Datacenter, c.Sources.Files)
	}
	if warnings, err := Default().Load(t.TempDir()); err != nil || len(warnings) != 1 {
		t.Errorf("empty directory: %v %v", warnings, err)
	}
	file := filepath.Join(t.TempDir(), "other.hcl")
	if err := os.WriteFile(file, []byte(`plugin "wibbledriver" {}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if warnings, err := Default().Load(file); err != nil || len(warnings) != 1 || !strings.Contains(warnings[0].Text, "plugins of others are not loaded yet") {
		t.Errorf("another's plugin: %v %v", warnings, err)
	}
	if _, err := Default().Load(filepath.Join(dir, "none.hcl")); err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

// Every refused file says where and what, with the nearest known name.
func TestRefusedFiles(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		name := "c.hcl"
		if strings.HasPrefix(src, "{") {
			name = "c.json"
		}
		_, err := Default().Merge(name, []byte(src))
		if err == nil {
			t.Errorf("%s: taken", src)
			return
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s:\n got %s\nwant %s", src, err, w)
			}
		}
	}
	f("server {\n client_liveness {\n storm_hold = \"1m\"\n}\n}", `c.hcl:3: server.client_liveness.storm_hold: renamed; write "mass_failure_limit"`)
	f("server {\n client_liveness {\n storm_share = 0.5\n}\n}", `storm_share: renamed; write "mass_failure_share"`)
	f("regoin = \"x\"", `c.hcl:1: regoin: unknown; did you mean "region"?`)
	f("\n\nserver {\n  enabeld = true\n}", `c.hcl:4: server.enabeld: unknown; did you mean "enabled"?`)
	f(`zzzzzzzz = 1`, "c.hcl:1: zzzzzzzz: unknown; this is not a name of the agent's configuration")
	f("ui {\n  enabeld = true\n}", `c.hcl:2: ui.enabeld: unknown; did you mean "enabled"?`)
	f(`job "x" {}`, "c.hcl:1: job: unknown")
	f(`region = `, "c.hcl:1: ")
	f(`server {`, "c.hcl:1: ")
	f("client {\n  enabled = yes\n}", `c.hcl:2: unknown name "yes": write true, or "yes" if it is meant as a string`)
	f("client {\n  enabled = off\n}", `c.hcl:2: unknown name "off": write false, or "off" if it is meant as a string`)
	f("region = eu", `c.hcl:1: unknown name "eu": a string is written in quotes, "eu"`)
	f(`ports { http = "many" }`, `c.hcl:1: ports.http: want a number, have "many"`)
	f(`ports { http = 1.5 }`, "c.hcl:1: ports.http: want a whole number, have 1.5")
	f(`ports { http = [1] }`, "ports.http: want a number, have a list")
	f(`ports = 4646`, "c.hcl:1: ports: want a block, have a value")
	f(`log_json = "sometimes"`, `log_json: want true or false, have "sometimes"`)
	f(`region = ["a"]`, "region: want a string, have a list")
	f(`server { job_gc_threshold = 30 }`, `server.job_gc_threshold: want a duration such as "30s" or "1h30m", have 30`)
	f(`server { job_gc_threshold = "soon" }`, `have "soon"`)
	f(`server { raft_trailing_logs = -1 }`, "want a whole number from 0")
	f(`client { servers = "one:1" }`, "client.servers: want a list, have a value")
	f(`client { servers = [null] }`, "must not be null")
	f(`client { meta = 5 }`, "client.meta: want names with values, have a value")
	f("client {\n meta { a = [\"b\"] }\n}", "client.meta.a: want a string, have a list")
	f("client {\n host_volume { path = \"/x\" }\n}", "client.host_volume.path: want a block, have a value")
	f("client {\n host_volume \"x\" { pth = \"/x\" }\n}", `client.host_volume.x.pth: unknown; did you mean "path"?`)
	f("region = \"a\"\nregion = \"b\"", "c.hcl:2: ")
	f("ports {\n}\nports {\n}", "c.hcl:3: ports: stated twice in one file")
	f(`region = upper("a")`, "c.hcl:1: ")
	f(`region = var.x`, "c.hcl:1: ")
	f(`region = "${node.x}"`, "c.hcl:1: ")
	f(`client { meta = { for k in ["a"] : k => k } }`, "written out")
	f("server {\n topology {\n level { meta = \"x\" }\n}\n}", `server.topology.level: needs a label`)
	f("a = "+strings.Repeat("[", 70)+strings.Repeat("]", 70), "c.hcl:1: nested deeper than the 64 levels")
	f(strings.Repeat("#", maxFileBytes+1), "at most 4194304 are allowed")
	f(`{"regoin": "x"}`, `c.json:1: regoin: unknown; did you mean "region"?`)
	f("{\n\"server\": {\n\"enabeld\": true}}", `c.json:3: server.enabeld: unknown; did you mean "enabled"?`)
	f("plugin \"raw_exec\" {\n config {\n enabeld = true\n}\n}", `c.hcl:3: plugin.raw_exec.config.enabeld: unknown; did you mean "enabled"?`)
	f(`plugin "raw_exec" { config = { enabled = "yes" } }`, `plugin.raw_exec.config.enabled: want true or false, have "yes"`)
	f("client {\n users { allowed = \"root\" }\n}", "client.users.allowed: want a list, have a value")
	f("client {\n users { allowd = [] }\n}", `client.users.allowd: unknown; did you mean "allowed"?`)
	f(`plugin "mock_driver" { config = { colour = 1 } }`, "plugin.mock_driver.config.colour: unknown")
	f("\nplugin \"rawexec\" {}", `c.hcl:2: plugin.rawexec: unknown; did you mean "raw_exec"?`)
	f(`{"plugin": [{"raw_exec": [{"config": [{"enabeld": true}]}]}]}`, `c.json:1: plugin.raw_exec.config.enabeld: unknown; did you mean "enabled"?`)
	f(`{"ports": {"http": "x"}}`, `c.json:1: ports.http: want a number, have "x"`)
	f(`{"server": true}`, "server: want a block, have a value")
	f(`{"region": "a"`, "c.json:1: ")
	f(`{"region": "a", "region": "b"}`, "c.json:1: ")
	// All of a file's problems are told, not only the first.
	f("regoin = 1\nports {\n  htpp = 2\n}", "c.hcl:1: regoin", "c.hcl:3: ports.htpp")
}

// manyMeta is n lines of meta, of 4,000 bytes each.
func manyMeta(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "    k%d = \"%s\"\n", i, strings.Repeat("x", 4000))
	}
	return b.String()
}

// What cannot work is refused where it was last stated.
func TestValidate(t *testing.T) {
	base := "data_dir = \"/d\"\nserver { enabled = true }\n"
	f := func(src, want string) {
		t.Helper()
		err := merged(t, base, src).Validate()
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", src, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s:\n got %v\nwant %s", src, err, want)
		}
	}
	f("", "")
	f("\ndata_dir = \"relative\"", `b.hcl:2: data_dir "relative": must be an absolute path`)
	f(`data_dir = ""`, "b.hcl:1: data_dir: missing")
	f(`server { enabled = false }`, "server.enabled, client.enabled: neither is set")
	f(`plugin "raw_exec" { config = { denied_host_uids = "root" } }`, `b.hcl:1: plugin.raw_exec.config.denied_host_uids: "root": must be numbers`)
	f(`plugin "raw_exec" { config = { denied_host_gids = "9-1" } }`, `b.hcl:1: plugin.raw_exec.config.denied_host_gids: "9-1": must be a range of numbers`)
	f("client {\n users { denied = [\"a b\"] }\n}", `b.hcl:2: client.users.denied: "a b": must be a name, a number, or a range`)
	f("client {\n users {\n alloc_group_min = 5\n alloc_group_max = 4\n}\n}", "alloc_group_max 5 to 4: must be a range of group IDs")
	f("client {\n options = { \"user.denylist\" = \"a b\" }\n}", `client.options: user.denylist: "a b": must be`)
	f(`limits { node_max_message_bytes = 1000 }`, "limits.node_max_message_bytes 1000: must be from 1048576")
	f(`limits { node_max_bytes_per_second = 1000 }`, "limits.node_max_bytes_per_second 1000: must be 0, for no bound, or from 65536")
	f("limits {\n  node_max_message_bytes = 4194304\n  node_max_bytes_per_second = 0\n}", "")
	f("client {\n  enabled = true\n  meta { a = \""+strings.Repeat("x", 5000)+"\" }\n}", "client.meta: the servers do not take it")
	f("client {\n  enabled = true\n  meta {\n"+manyMeta(70)+"}\n}", "client.meta: the servers do not take it")
	f("client {\n  enabled = true\n  meta {\n"+manyMeta(60)+"}\n}", "")
	f(`log_level = "loud"`, `b.hcl:1: log_level "loud": must be one of TRACE`)
	f(`region = "a b"`, "region")
	f(`datacenter = "*"`, "datacenter")
	f(`name = "a b"`, "name")
	f(`bind_addr = "{{ GetPrivateIP }}"`, "templates are not supported yet")
	f(`bind_addr = "1.2.3.4:5"`, "must not have a port")
	f(`bind_addr = "::1"`, "")
	f(`client { cgroup_parent = "/machine.slice/tasks/" }`, "")
	f("client {\n enabled = true\n cgroup_parent = \"../up\"\n}", `b.hcl:3: client.cgroup_parent: control group "../up": must be a path below`)
	f(`addresses { http = "a/b" }`, "addresses.http")
	f(`addresses { rpc = "a b" }`, "must be one address")
	f(`advertise { rpc = "0.0.0.0:1" }`, "others can reach")
	f(`advertise { rpc = "host:1" }`, "")
	f(`ports { http = -1 }`, "ports.http -1: must be from 0")
	f(`ports { rpc = 70000 }`, "ports.rpc 70000")
	f(`ports { rpc = 4646 }`, "is the HTTP port too")
	f(`ports { http = 0 }`, "")
	f("ports {\n  rpc = 0\n  http = 0\n}", "")
	f(`server { bootstrap_expect = -1 }`, "b.hcl:1: server.bootstrap_expect -1: must be from 1 to 31, or 0")
	f(`server { bootstrap_expect = 32 }`, "must be from 1 to 31")
	f(`server { bootstrap_expect = 0 }`, "")
	f(`server { encrypt = "short" }`, "b.hcl:1: server.encrypt: must be base64")
	f(`server { encrypt = "c2hvcnQ=" }`, "server.encrypt: holds 5 bytes; a key has 16, 24 or 32")
	f(`server { encrypt = "MDEyMzQ1Njc4OWFiY2RlZg==" }`, "")
	f("server {\n server_join {\n  retry_join = [\"provider=aws tag_key=x\"]\n }\n}", "b.hcl:3: server.server_join.retry_join \"provider=aws tag_key=x\": finding servers through a cloud is not supported")
	f(`server { start_join = ["a b"] }`, "server.start_join \"a b\": must be host or host:port")
	f(`server { retry_join = ["10.0.0.1", "[::1]:4648"] }`, "")
	f(`server { retry_interval = "-1s" }`, "server.retry_interval: must not be negative")
	f("server {\n server_join { retry_max = -1 }\n}", "server.server_join.retry_max: must not be negative")
	f(`autopilot { min_quorum = -1 }`, "b.hcl:1: autopilot.min_quorum: must not be negative")
	f(`ports { serf = 4647 }`, "b.hcl:1: ports.serf 4647: is the HTTP or the RPC port too")
	f(`ports { serf_wan = 4648 }`, "b.hcl:1: ports.serf_wan 4648: is the HTTP, the RPC or the serf port too")
	f(`ports { rpc = 4649 }`, "ports.serf_wan 4649: is the HTTP, the RPC or the serf port too")
	f(`ports { serf_wan = -2 }`, "b.hcl:1: ports.serf_wan -2: must be from 0 (any free one) to 65535, or -1")
	f(`ports { serf_wan = -1 }`, "")
	f("ports {\n serf = 7000\n rpc = 4649\n}", "") // off
	f("ports { serf = 7000 }\nserver {\n server_join {\n  retry_join_wan = [\"10.0.0.1\"]\n }\n}", "b.hcl:4: server.server_join.retry_join_wan: the gossip with other regions is off: state ports { serf_wan = 4649 }")
	f("server {\n server_join { retry_join_wan = [\"a b\"] }\n}", "server.server_join.retry_join_wan \"a b\": must be host or host:port")
	f("server {\n server_join { retry_max_wan = -1 }\n}", "server.server_join.retry_max_wan: must not be negative")
	f(`addresses { serf_wan = "127.0.0.1 ::1" }`, "b.hcl:1: addresses.serf_wan \"127.0.0.1 ::1\": must be one address")
	f(`advertise { serf_wan = "0.0.0.0" }`, "b.hcl:1: advertise.serf_wan")
	f(`region = "eu.west"`, `b.hcl:1: region "eu.west": must be 1 to 128 letters, digits, dashes or underscores`)
	f(`region = "`+strings.Repeat("x", 129)+`"`, "must be 1 to 128 letters")
	f(`server { num_schedulers = -1 }`, "server.num_schedulers")
	f(`server { enabled_schedulers = ["servce"] }`, `"servce": allowed are`)
	f(`server { raft_multiplier = 11 }`, "from 1 to 10")
	f(`server { heartbeat_grace = "-1s" }`, "must not be negative")
	f(`server { job_max_priority = 101 }`, "b.hcl:1: server.job_max_priority 101: must be from job_default_priority (50) to 100: priorities of jobs are from 1 to 100 here")
	f(`server { job_max_priority = 32766 }`, "server.job_max_priority 32766: must be from job_default_priority (50) to 100")
	f(`server { job_max_priority = 49 }`, "b.hcl:1: server.job_max_priority 49: must be from job_default_priority (50) to 100; state a lower job_default_priority too")
	f(`server { job_max_priority = -1 }`, "server.job_max_priority -1")
	f(`server { job_max_priority = 50 }`, "")
	f("server {\n job_max_priority = 40\n job_default_priority = 40\n}", "")
	f("server {\n job_max_priority = 40\n job_default_priority = 41\n}", "server.job_max_priority 40: must be from job_default_priority (41)")
	f(`server { job_default_priority = 100 }`, "")
	f(`server { job_default_priority = 101 }`, "b.hcl:1: server.job_default_priority 101: must be from 1 to job_max_priority, which is at most 100")
	f(`server { job_default_priority = -1 }`, "server.job_default_priority -1: must be from 1")
	f(`server { job_max_source_size = "big" }`, "such as 1M")
	f(`server { job_max_size = "big" }`, "such as 4MiB")
	f("server {\n default_scheduler_config { scheduler_algorithm = \"best\" }\n}", "binpack and spread")
	f("server {\n topology { levels = [\"gpu\", \"node\", \"gpu\"] }\n}", `b.hcl:2: server.topology: levels: "gpu" is listed twice`)
	f("server {\n scheduling {\n policy = \"best\"\n}\n}", `b.hcl:3: server.scheduling.policy: "best": must be "binpack"`)
	f("server {\n default_scheduler_config { scheduler_algorithm = \"spread\" }\n scheduling { policy = \"binpack\" }\n}",
		`server.scheduling.policy: "binpack": contradicts SchedulerAlgorithm "spread"`)
	f("server {\n scheduling { policy = \"spread\" }\n}", "")
	f("server {\n scheduling {\n dimensions = [\"gpu\"]\n}\n}", `b.hcl:3: server.scheduling.dimensions: "gpu": must be`)
	f("server {\n scheduling { granularity = { cpu = 0 } }\n}", `server.scheduling.granularity: cpu = 0: must be at least 1`)
	f("server {\n scheduling { preferred_cells = [0] }\n}", "server.scheduling.preferred_cells: 0: a size is from 1")
	f("server {\n scheduling { reservation_ttl = \"-1s\" }\n}", "server.scheduling.reservation_ttl")
	f("server {\n scheduling { reservation_after = \"-1s\" }\n}", "") // never
	f("server {\n scheduling {\n bands = [[1, 40], [40, 100]]\n}\n}",
		"b.hcl:3: server.scheduling.bands: [40, 100] overlaps or goes before [1, 40]; state them lowest first, each above the last")
	f("server {\n scheduling {\n bands = [[71, 100], [1, 40]]\n}\n}", "b.hcl:3: server.scheduling.bands: [1, 40] overlaps or goes before [71, 100]")
	f("server {\n scheduling {\n bands = [[40, 1]]\n}\n}", "[40, 1]: a band goes from a lower to a higher priority, of 1 to 100")
	f("server {\n scheduling {\n bands = [[0, 40]]\n}\n}", "[0, 40]: a band goes from a lower to a higher priority, of 1 to 100")
	f("server {\n scheduling {\n bands = [[1, 101]]\n}\n}", "[1, 101]: a band goes")
	f("server {\n scheduling {\n bands = [[1, 40], [41]]\n}\n}", "b.hcl:3: server.scheduling.bands[1] has 1 numbers: a band is its lowest and its highest priority, such as [1, 40]")
	f("server {\n scheduling { bands = [[1, 20], [41, 60], [99, 99]] }\n}", "") // gaps belong to the band below
	f("server {\n scheduling {\n\n cycle = \"-1s\"\n}\n}", "b.hcl:4: server.scheduling.cycle: -1s: must not be negative; Aging 0 is what turns aging off")
	f("server {\n scheduling { aging = 2 }\n}", "b.hcl:2: server.scheduling.aging: 2: must be 1, or 0 to turn it off")
	f("server {\n scheduling { keep_whole = true }\n}", "")
	f("server {\n default_scheduler_config {\n  preemption_config { batch_scheduler_enabled = true }\n }\n scheduling {\n preemption {\n batch_scheduler_enabled = false\n}\n}\n}",
		"b.hcl:7: server.scheduling.preemption.batch_scheduler_enabled = false: default_scheduler_config.preemption_config sets true; state it in one place")
	f("server { enabled = false }\nclient { enabled = true }", "client.servers: missing")
	f(`client { enabled = true }`, "")
	f("client {\n enabled = true\n servers = [\"a b\"]\n}", `b.hcl:3: client.servers "a b": must be host or host:port`)
	f("client {\n enabled = true\n server_join { retry_join = [\"\"] }\n}", `client.server_join.retry_join "": must be host or host:port`)
	f("client {\n enabled = true\n min_dynamic_port = 9\n max_dynamic_port = 8\n}", "must be a range")
	f("client {\n enabled = true\n gc_disk_usage_threshold = 101\n}", "percentage")
	f("client {\n enabled = true\n disk_full_percent = 101\n}", "client.disk_full_percent 101: must be a percentage")
	f("server {\n enabled = true\n disk_full_percent = -1\n}", "server.disk_full_percent -1: must be a percentage")
	f("client {\n enabled = true\n memory_total_mb = -1\n}", "must not be negative")
	f("client {\n enabled = true\n host_volume \"v\" { path = \"x\" }\n}", `host_volume.v: path "x"`)
	f("client {\n enabled = true\n state_dir = \"x\"\n}", "client.state_dir")
	f("client {\n enabled = true\n simulate_beside = true\n}", "without simulate")
	const files = "ca_file = \"c\"\n cert_file = \"a\"\n key_file = \"k\"\n"
	f(`tls { http = false }`, "")
	f("tls {\n http = true\n rpc = true\n verify_server_hostname = true\n verify_https_client = true\n rpc_upgrade_mode = true\n tls_min_version = \"tls13\"\n"+files+"}", "")
	f("tls {\n http = true\n cert_file = \"a\"\n key_file = \"k\"\n}", "") // any browser's authorities
	f("tls {\n http = true\n client_requests = true\n"+files+"}", "")
	f(`tls { http = true }`, "tls.cert_file: missing; TLS needs a certificate and its key")
	f("tls {\n rpc = true\n cert_file = \"a\"\n}", "tls.key_file: missing")
	f("tls {\n rpc = true\n cert_file = \"a\"\n key_file = \"k\"\n}", "tls.ca_file: missing; it names the CA whose certificates are trusted")
	f("tls {\n http = true\n verify_https_client = true\n cert_file = \"a\"\n key_file = \"k\"\n}", "tls.ca_file: missing")
	f("tls {\n http = true\n verify_server_hostname = true\n"+files+"}", "b.hcl:3: tls.verify_server_hostname: has no effect without rpc = true")
	f("tls {\n http = true\n rpc_upgrade_mode = true\n"+files+"}", "b.hcl:3: tls.rpc_upgrade_mode: has no effect without rpc = true")
	f("tls {\n rpc = true\n verify_https_client = true\n"+files+"}", "b.hcl:3: tls.verify_https_client: has no effect without http = true")
	f(`tls { tls_min_version = "tls10" }`, `b.hcl:1: tls.tls_min_version "tls10": is broken`)
	f(`tls { tls_cipher_suites = "RC4" }`, `b.hcl:1: tls.tls_cipher_suites "RC4": is no secure suite of TLS 1.2; allowed are TLS_`)
	f(`acl { enabled = true }`, `b.hcl:1: acl.enabled: access control is not there yet, and`)
	f("bind_addr = \"0.0.0.0\"\nacl { enabled = true }", `other machines can reach it: bind_addr = "127.0.0.1" keeps them out`)
	f("bind_addr = \"127.0.0.1\"\nacl { enabled = true }", "b.hcl:2: acl.enabled: access control is not there yet")
	f("bind_addr = \"127.0.0.1\"\nacl { enabled = true }", "it listens on loopback only") // no advice that is followed already
	f("bind_addr = \"::1\"\naddresses { http = \"127.0.0.1 10.0.0.1\" }\nacl { enabled = true }", "other machines can reach it at the addresses that the block addresses names")
	f("bind_addr = \"0.0.0.0\"\ntls {\n http = true\n rpc = true\n verify_https_client = true\n"+files+"}\nacl { enabled = true }", "its tls block requires a certificate of every caller")
	f(`telemetry { collection_interval = "0s" }`, "telemetry")
	f(`telemetry { prefix_filter = ["x"] }`, "must begin with + or -")
	f(`telemetry { max_series = -1 }`, "telemetry.max_series -1: must be from 0 to 1000000")
	f(`telemetry { max_series = 1000001 }`, "telemetry.max_series 1000001: must be from 0 to 1000000")
	f(`telemetry { statsd_address = "10.0.0.1" }`, `telemetry.statsd_address "10.0.0.1": must be host:port`)
	f(`telemetry { statsite_address = "10.0.0.1:" }`, `telemetry.statsite_address "10.0.0.1:": must be host:port`)
	f("telemetry {\n statsd_address = \"[::1]:8125\"\n statsite_address = \"stats:8125\"\n max_series = 0\n}", "")
	f(`limits { http_max_conns_per_client = -1 }`, "limits")
	f(`limits { http_body_timeout = "-1s" }`, "limits")
	f("http_config {\n allowed_hosts = [\"nomad.example.com\", \"*.example.com\", \".example.org\", \"*\"]\n trusted_origins = [\"https://dash.example.com\", \"http://[::1]:8080\"]\n}", "")
	f("http_config {\n allowed_hosts = [\"nomad:4646\"]\n}", `b.hcl:2: http_config.allowed_hosts "nomad:4646": must not have a port`)
	f("http_config {\n allowed_hosts = [\"10.0.0.1\"]\n}", `"10.0.0.1": IP addresses are always allowed`)
	f("http_config {\n allowed_hosts = [\"[::1]\"]\n}", `"[::1]": IP addresses are always allowed`)
	for _, host := range []string{"", "*.", "**", ".*", "*example.com", "a*b", "*.*.com", "https://a", "a b", "..a"} {
		f("http_config {\n allowed_hosts = [\""+host+"\"]\n}", fmt.Sprintf("b.hcl:2: http_config.allowed_hosts %q: must be a host name", host))
	}
	for _, origin := range []string{"", "dash.example.com", "https://a/", "https://a/b", "https://", "ftp://a", "https://u@a", "https://a?b", "null", "*"} {
		f("http_config {\n trusted_origins = [\""+origin+"\"]\n}", fmt.Sprintf("b.hcl:2: http_config.trusted_origins %q: must be an origin", origin))
	}
	f(`limits { job_parse_max_processes = 0 }`, "at least 1")
	f(`limits { job_parse_max_waiting = -1 }`, "at least 1")
	f(`limits { job_parse_cpu_time = "1ms" }`, "at least 100ms")
	f(`limits { job_parse_memory_bytes = 1000 }`, "at least 67108864")
}

// A simulated-only client keeps nothing and needs no directory; -dev neither.
func TestNoDataDir(t *testing.T) {
	c := merged(t, `client {
  enabled  = true
  simulate = "f"
  servers  = ["a:1"]
}`)
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	c = Default()
	c.SetDev()
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if c.BindAddr != "127.0.0.1" || c.Region != "global" || c.Datacenter != "dc1" || c.Ports.HTTP != 4646 {
		t.Errorf("%+v", c)
	}
	c.Stated("ports.http", "http-port")
	c.Ports.HTTP = -1
	if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), "flag -http-port: ports.http -1") {
		t.Error(err)
	}
}

// TestJSONByContent: a text that begins with a brace is JSON whatever its file is called, and may have trailing commas.
func TestJSONByContent(t *testing.T) {
	c := Default()
	src := "\n {\"name\": \"a,}\\\",]\", \"server\": {\"enabled\": true, \"retry_join\": [\"10.0.0.1\",\n],}, }"
	if _, err := c.Merge("nomad2871", []byte(src)); err != nil {
		t.Fatal(err)
	}
	if c.Name != `a,}",]` || !c.Server.Enabled || !slices.Equal(c.Server.RetryJoin, []string{"10.0.0.1"}) {
		t.Errorf("name %q, server %+v", c.Name, c.Server)
	}
	_, err := Default().Merge("x", []byte("{\n\"regoin\": 1,}"))
	if err == nil || !strings.HasPrefix(err.Error(), "x:2: regoin: unknown") {
		t.Errorf("a wrong name in JSON: %v", err)
	}
}

// TestNoEffectYet: blocks of Nomad's that have no effect here are accepted.
func TestNoEffectYet(t *testing.T) {
	merged(t, `client {
  stats {
    data_points = 60
  }
}
rpc { max_stream_window_size = 262144 }`)
}

// TestWarnedOf: what is accepted without an effect is said, with its place; keys of a map as settings.
func TestWarnedOf(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		name := "a.hcl"
		if strings.HasPrefix(src, "{") {
			name = "a.json"
		}
		warnings, err := Default().Merge(name, []byte(src))
		var got []string
		for _, w := range warnings {
			got = append(got, w.String())
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", src, got, err)
		}
	}
	f("client {\n options = {\n  \"driver.denylist\" = \"raw_exec\"\n  \"user.denylist\" = \"root\"\n }\n}", `a.hcl:3: client.options.driver.denylist: accepted, but has no effect`)
	f("client {\n options {\n  \"driver.raw_exec.enabled\" = \"1\"\n }\n}",
		`a.hcl:3: client.options.driver.raw_exec.enabled: accepted, but has no effect; did you mean "driver.raw_exec.enable"?`)
	f(`{"client": {"options": [{"user.checked_drivers": "exec", "x": "1"}]}}`, `a.json:1: client.options.x: accepted, but has no effect`)
	f("plugin \"raw_exec\" {\n args = [\"-x\"]\n}", "a.hcl:2: plugin.raw_exec.args: accepted, but has no effect yet")
	f(`acl { enabled = false }`)
}

// Every block and attribute of Nomad's agent is known: refusing one would break
// a configuration that works there.
func TestSurface(t *testing.T) {
	raw, err := os.ReadFile("testdata/surface.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		lines++
		path, names, ok := strings.Cut(line, ": ")
		if !ok {
			t.Fatalf("line %q", line)
		}
		s := schemaOf(reflect.TypeFor[Config]())
		typ := reflect.TypeFor[Config]()
		for part := range strings.SplitSeq(path, ".") {
			if part == "agent" {
				continue
			}
			field, ok := s.fields[part]
			if !ok {
				t.Errorf("%s: block %s is not known", path, part)
				break
			}
			typ = typ.FieldByIndex(field.index).Type
			for typ.Kind() == reflect.Map || typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
				typ = typ.Elem()
			}
			s = schemaOf(typ)
		}
		for name := range strings.SplitSeq(names, ", ") {
			if !slices.Contains(s.names, name) {
				t.Errorf("%s: %s is not known", path, name)
			}
		}
	}
	if lines < 38 {
		t.Errorf("only %d structs", lines)
	}
}

func FuzzConfig(f *testing.F) {
	// Small seeds: what the engine finds interesting, it first makes smaller.
	f.Add([]byte("region = \"a\"\nclient {\n \"m.x\" = [1]\n}"), false)
	f.Add([]byte("server {\n job_gc_threshold = \"1h\"\n}"), false)
	f.Add([]byte("plugin \"p\" {\n config { a = { b = null } }\n}"), false)
	f.Add([]byte(`{"ports": {"http": 1}, "client": [{"meta": {"a": "b"}}]}`), true)
	f.Add([]byte(`a = "${"`), false)
	f.Add([]byte("x <<E\nE\n"), false)
	f.Add([]byte(`{"a": [[[]]]}`), true)
	f.Fuzz(func(t *testing.T, src []byte, json bool) {
		name := "f.hcl"
		if json {
			name = "f.json"
		}
		c := Default()
		_, err := c.Merge(name, src)
		var ps Problems
		if err != nil && (!errors.As(err, &ps) || len(ps) == 0) {
			t.Errorf("%q: %v", src, err)
		}
		_ = c.ValidateRead() // must not panic
		if err == nil {
			_ = c.Validate() // nor this
		}
	})
}
