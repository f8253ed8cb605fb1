package cgroup

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

// machine is a machine with control groups that a test stands in for.
type machine struct {
	*fake
	system *System
	root   string
}

// newMachine makes one. unified are the controllers of its unified hierarchy; nil: it has none. first are the mounts of
// version 1, each named by its controllers ("all": all three in one).
func newMachine(t *testing.T, unified []string, first ...string) *machine {
	t.Helper()
	p := &machine{fake: &fake{t: t}, root: t.TempDir()}
	var mounts, own string
	if unified != nil {
		p.v2 = filepath.Join(p.root, "unified")
		p.mount(p.v2, unified...)
		mounts += "30 25 0:26 / " + p.v2 + " rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
		own += "0::/agent.service\n"
	}
	for _, c := range first {
		dir := filepath.Join(p.root, c)
		p.mount(dir)
		options := c
		if c == "all" {
			options = "cpu,memory,pids"
		}
		mounts += "31 25 0:27 / " + dir + " rw - cgroup cgroup rw," + options + "\n"
		own += "5:" + options + ":/agent.service\n"
	}
	p.system = detect(p.fake, mounts, own, 4)
	p.system.born = func() error { return nil }
	return p
}

func (p *machine) open(t *testing.T, parent string) *Base {
	t.Helper()
	b, err := p.system.Open(parent)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var all = []string{"cpu", "cpuset", "memory", "pids"}

// Whatever is mounted, a task gets its limits in the files of that hierarchy, and can be removed.
func TestHierarchies(t *testing.T) {
	limits := Limits{Memory: 400 << 20, MemoryLow: 100 << 20, Pids: 60, CPU: 500}
	const dir = "/up/agent-1/a%2Fb.scope/"
	v2 := map[string]string{
		"memory.max": "419430400", "memory.swap.max": "0", "memory.oom.group": "1", "memory.low": "104857600", "pids.max": "60", "cpu.weight": "19",
	}
	in := func(hierarchy string, files map[string]string) map[string]string {
		out := map[string]string{}
		for name, text := range files {
			out[hierarchy+dir+name] = text
		}
		return out
	}
	memory1 := map[string]string{
		"memory.limit_in_bytes": "419430400", "memory.memsw.limit_in_bytes": "419430400", "memory.soft_limit_in_bytes": "104857600", "memory.swappiness": "0",
	}
	merge := func(maps ...map[string]string) map[string]string {
		out := map[string]string{}
		for _, m := range maps {
			for k, v := range m {
				out[k] = v
			}
		}
		return out
	}
	for _, c := range []struct {
		name    string
		unified []string
		first   []string
		without []string
		limited string
		want    map[string]string
	}{
		{name: "version 2", unified: all, limited: "memory,pids,cpu", want: in("unified", v2)},
		{
			name: "version 1", first: []string{"memory", "pids", "cpu"}, limited: "memory,pids,cpu",
			want: merge(in("memory", memory1), in("pids", map[string]string{"pids.max": "60"}), in("cpu", map[string]string{"cpu.shares": "500"})),
		},
		{
			name: "version 1 in one", first: []string{"all"}, limited: "memory,pids,cpu",
			want: in("all", merge(memory1, map[string]string{"pids.max": "60", "cpu.shares": "500"})),
		},
		{
			name: "hybrid", unified: []string{"hugetlb"}, first: []string{"memory", "pids", "cpu"}, limited: "memory,pids,cpu",
			want: merge(in("memory", memory1), in("pids", map[string]string{"pids.max": "60"}), in("unified", map[string]string{"cgroup.kill": ""})),
		},
		{
			name: "divided", unified: []string{"pids", "cpu"}, first: []string{"memory"}, limited: "memory,pids,cpu",
			want: merge(in("memory", memory1), in("unified", map[string]string{"pids.max": "60", "cpu.weight": "19"})),
		},
		{
			name: "without swap", unified: all, without: []string{"memory.swap.max", "memory.oom.group"}, limited: "memory,pids,cpu",
			want: in("unified", map[string]string{"memory.max": "419430400"}),
		},
		{
			name: "without counting of swap", first: []string{"memory"}, without: []string{"memory.memsw.limit_in_bytes"}, limited: "memory",
			want: in("memory", map[string]string{"memory.limit_in_bytes": "419430400", "memory.swappiness": "0"}),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newMachine(t, c.unified, c.first...)
			p.without = c.without
			b := p.open(t, "up/agent-1")
			if got := strings.Join(b.Limited(), ","); got != c.limited {
				t.Fatalf("limited: %q: %s", got, b.Missing())
			}
			g := b.Group("a/b", limits)
			if err := p.system.Create(g); err != nil {
				t.Fatal(err)
			}
			for file, want := range c.want {
				if got := p.text(filepath.Join(p.root, file)); got != want {
					t.Errorf("%s holds %q, want %q", file, got, want)
				}
			}
			if err := p.system.Create(g); err != nil {
				t.Errorf("a second time: %v", err)
			}
			data, err := json.Marshal(g)
			if err != nil {
				t.Fatal(err)
			}
			kept := &Group{}
			if err := json.Unmarshal(data, kept); err != nil || !reflect.DeepEqual(g, kept) {
				t.Errorf("kept as %s: %+v, %v", data, kept, err)
			}
			if err := p.system.Remove(t.Context(), kept); err != nil {
				t.Error(err)
			}
			b.Close()
			for _, dir := range g.dirs() {
				if _, err := os.Stat(filepath.Dir(dir)); err == nil {
					t.Errorf("%s is left", filepath.Dir(dir))
				}
			}
		})
	}
}

// What cannot be used is not claimed, and the reason says what to do.
func TestMissing(t *testing.T) {
	for _, c := range []struct {
		name    string
		machine func(t *testing.T) *machine
		limited string
		says    []string
	}{
		{"nothing mounted", func(t *testing.T) *machine { return newMachine(t, nil) }, "", []string{"no control groups are mounted"}},
		{"read-only", func(t *testing.T) *machine {
			p := newMachine(t, all)
			p.readOnly = []string{p.v2}
			return p
		}, "", []string{"permission denied", "run the agent as root", "cgroup_parent"}},
		{"nobody may be born", func(t *testing.T) *machine {
			p := newMachine(t, all)
			p.system.born = func() error { return syscall.ENOSYS }
			return p
		}, "", []string{"born", "Linux 5.7"}},
		{"nobody may be born, in hybrid", func(t *testing.T) *machine {
			p := newMachine(t, []string{}, "memory", "pids", "cpu")
			p.system.born = func() error { return syscall.ENOSYS }
			return p
		}, "memory,pids,cpu", nil},
		{"no controller memory", func(t *testing.T) *machine { return newMachine(t, []string{"pids", "cpu"}) }, "pids,cpu", []string{"no controller for memory,"}},
		{"processes in the way", func(t *testing.T) *machine {
			p := newMachine(t, all)
			if err := p.Mkdir(p.v2 + "/up"); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p.v2+"/up/cgroup.procs", []byte("99\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			return p
		}, "", []string{"/up: it has processes of its own", "cgroup_parent"}},
		{"delegated", func(t *testing.T) *machine {
			p := newMachine(t, all)
			for _, c := range []string{"+memory", "+pids"} {
				if err := p.WriteFile(p.v2+"/cgroup.subtree_control", c); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Mkdir(p.v2 + "/up"); err != nil {
				t.Fatal(err)
			}
			p.readOnly = []string{p.v2}
			return p
		}, "memory,pids", []string{`controller "cpu" cannot be passed on`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := c.machine(t)
			b := p.open(t, "up/agent-1")
			if got := strings.Join(b.Limited(), ","); got != c.limited {
				t.Errorf("limited: %q", got)
			}
			if (b.Missing() == "") != (len(c.says) == 0) {
				t.Errorf("missing: %q", b.Missing())
			}
			for _, want := range c.says {
				if !strings.Contains(b.Missing(), want) {
					t.Errorf("missing: %q, want it to say %q", b.Missing(), want)
				}
			}
			g := b.Group("t", Limits{Memory: 1 << 20, Pids: 5, CPU: 5})
			if err := p.system.Create(g); err != nil {
				t.Errorf("a task without some limits: %v", err)
			}
		})
	}
}

// A limit that cannot be set is an error, and leaves nothing.
func TestCreateFails(t *testing.T) {
	p := newMachine(t, all)
	p.without = []string{"pids.max"}
	b := p.open(t, "up")
	g := b.Group("t", Limits{Pids: 5})
	if err := p.system.Create(g); err == nil || !strings.Contains(err.Error(), "pids.max") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(g.Unified); err == nil {
		t.Errorf("%s is left", g.Unified)
	}
}

// Events and their text, in the files of both versions.
func TestEvents(t *testing.T) {
	l := Limits{Memory: 20 << 20, Pids: 50}
	const memory, pids = "the task reached its memory limit of 20 MiB", "the task reached its limit of 50 processes and threads"
	const elsewhere = "the machine, or the group of all tasks, ran out of memory while the task was below its own limit"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
		kills uint64
	}{
		{"2: nothing", map[string]string{"memory.events": "low 0\nmax 12\noom 0\noom_kill 0\n", "pids.events": "max 0\n"}, "", 0},
		{"2: memory", map[string]string{"memory.events": "max 12\noom 1\noom_kill 3\noom_group_kill 1\n"}, memory, 3},
		{"2: the machine", map[string]string{"memory.events": "max 0\noom 0\noom_kill 1\n"}, elsewhere, 1},
		{"2: pids", map[string]string{"pids.events": "max 7\n"}, pids, 0},
		{"2: both", map[string]string{"memory.events": "oom 1\noom_kill 1\n", "pids.events": "max 7\n"}, memory + "; " + pids, 1},
		{"1: nothing", map[string]string{"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n", "memory.max_usage_in_bytes": "20971520\n"}, "", 0},
		{"1: memory", map[string]string{"memory.oom_control": "oom_kill 1\n", "memory.max_usage_in_bytes": "20971520\n"}, memory, 1},
		{"1: the machine", map[string]string{"memory.oom_control": "oom_kill 1\n", "memory.max_usage_in_bytes": "5000000\n"}, elsewhere, 1},
		{"1: pids", map[string]string{"pids.events": "max 1\n"}, pids, 0},
		{"1: no file", nil, "", 0},
	} {
		p := newMachine(t, all)
		if c.name[0] == '1' {
			p = newMachine(t, nil, "all")
		}
		g := p.open(t, "up").Group("t", l)
		if err := p.system.Create(g); err != nil {
			t.Fatal(err)
		}
		for name, text := range c.files {
			if err := p.WriteFile(filepath.Join(g.Memory, name), text); err != nil {
				t.Fatal(err)
			}
		}
		e := p.system.Events(g)
		if got := g.Text(e); got != c.want || e.OOMKills != c.kills {
			t.Errorf("%s: %q, %+v", c.name, got, e)
		}
	}
}

func TestWeights(t *testing.T) {
	for mhz, want := range map[int64]int64{0: 1, 1: 1, 2: 1, 100: 4, 1024: 39, 2600: 100, 262_144: 10_000, 1 << 40: 10_000} {
		if got := weightOf(mhz); got != want {
			t.Errorf("%d MHz: weight %d, want %d", mhz, got, want)
		}
	}
	for mhz, want := range map[int64]int64{0: 2, 1: 2, 500: 500, 1 << 40: 262_144} {
		if got := sharesOf(mhz); got != want {
			t.Errorf("%d MHz: shares %d, want %d", mhz, got, want)
		}
	}
}

// Only what is below a hierarchy's mount is home.
func TestHomeOf(t *testing.T) {
	const own = "6:cpu,cpuacct:/box/agent\n4:memory:/elsewhere\n0::/box\n"
	for _, c := range []struct{ controller, root, want string }{
		{"cpu", "/", "/m/box/agent"}, {"cpu", "/box", "/m/agent"}, {"memory", "/box", ""}, {"memory", "/elsewhere", "/m"},
		{"", "/box", "/m"}, {"pids", "/", ""}, {"cpu", "/bo", ""},
	} {
		if got := homeOf(own, c.controller, c.root, "/m"); got != c.want {
			t.Errorf("%q below %q: %q, want %q", c.controller, c.root, got, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	p := newMachine(t, all)
	b := p.open(t, "up")
	a, c := b.Group(strings.Repeat("/", 200), Limits{}), b.Group(strings.Repeat("/", 199)+".", Limits{})
	for _, g := range []*Group{a, c} {
		if n := len(filepath.Base(g.Unified)); n > 255 || filepath.Dir(g.Unified) != p.v2+"/up" {
			t.Errorf("%d bytes: %s", n, g.Unified)
		}
	}
	if a.Unified == c.Unified {
		t.Errorf("one name for two tasks: %s", a.Unified)
	}
	for _, bad := range []string{"", ".", "..", "../a", "/a", "a/", "a//b", "a/../b", "a\nb", "a\x00"} {
		if err := ValidateParent(bad); err == nil {
			t.Errorf("%q: taken as a parent", bad)
		}
	}
	dir := t.TempDir()
	one, two := AgentName(dir), AgentName(t.TempDir())
	if one == two || one != AgentName(dir+"/") || ValidateParent("nomadish.slice/"+one) != nil {
		t.Errorf("%q and %q", one, two)
	}
}

// Groups that somebody has left are removed, those in use and those with members are not.
func TestTidy(t *testing.T) {
	p := newMachine(t, all, "memory")
	b := p.open(t, "up")
	for _, id := range []string{"left", "kept", "alive"} {
		if err := p.system.Create(b.Group(id, Limits{})); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Mkdir(b.unified + "/left.scope/below"); err != nil {
		t.Fatal(err)
	}
	for _, dir := range b.dirs() {
		if err := os.WriteFile(filepath.Join(dir, "alive.scope", "cgroup.procs"), []byte("99\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.Tidy(func(name string) bool { return name == "kept.scope" })
	for id, want := range map[string]bool{"left": false, "kept": true, "alive": true} {
		for _, dir := range b.dirs() {
			if _, err := os.Stat(filepath.Join(dir, id+".scope")); (err == nil) != want {
				t.Errorf("%s in %s: %v", id, dir, err)
			}
		}
	}
	b.Close()
	if _, err := os.Stat(b.unified); err != nil {
		t.Errorf("the base with groups in it: %v", err)
	}
	if again := p.open(t, "up"); again == b {
		t.Error("a base that was closed is given again")
	}
}
