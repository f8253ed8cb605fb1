package fingerprint

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// root makes a file system of files.
func root(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const cpuinfo = "processor\t: 0\nmodel name\t: Fast CPU\ncpu MHz\t\t: 2100.5\n\nprocessor\t: 2\nmodel name\t: Fast CPU\ncpu MHz\t\t: 2100.5\n"

func TestMachine(t *testing.T) {
	dir := root(t, map[string]string{
		"proc/cpuinfo": cpuinfo, "proc/sys/kernel/osrelease": "6.8.0-1\n", "etc/os-release": "ID=ubuntu\nVERSION_ID=\"24.04\"\n",
		"sys/devices/system/cpu/cpu2/cpufreq/base_frequency": "3000000\n", "sys/fs/cgroup/cgroup.controllers": "cpu\n",
		"sys/devices/system/node/node0/cpulist": "0,2\n",
	})
	r, err := Run(t.Context(), Options{Root: dir, AllocDir: dir, MemoryTotalMB: 512, DiskFreeMB: 100, Version: "1.2.3", MinDynamicPort: 20000, MaxDynamicPort: 32000})
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range map[string]string{
		"cpu.numcores": "2", "cpu.frequency": "3000", "cpu.totalcompute": "5100", "cpu.modelname": "Fast CPU", "kernel.name": "linux",
		"kernel.version": "6.8.0-1", "os.name": "ubuntu", "os.version": "24.04", "unique.cgroup.version": "v2", "os.cgroups.version": "2",
		"memory.totalbytes": "536870912", "nomad.version": "1.2.3", "nomadish.version": "1.2.3", "numa.node.count": "1",
		"numa.node0.cores": "0,2", "unique.hostname": r.Hostname,
	} {
		if r.Attributes[k] != want {
			t.Errorf("%s = %q, want %q", k, r.Attributes[k], want)
		}
	}
	res := r.Resources
	if res.Cpu.CpuShares != 5100 || res.Cpu.TotalCpuCores != 2 || !slices.Equal(res.Cpu.ReservableCpuCores, []uint16{0, 2}) ||
		res.Memory.MemoryMB != 512 || res.Disk.DiskMB != 100 || res.MinDynamicPort != 20000 {
		t.Errorf("resources %+v", res)
	}
}

func TestOverridesAndFallbacks(t *testing.T) {
	f := func(files map[string]string, edit func(*Options), wantShares int64, wantErr bool) {
		t.Helper()
		dir := root(t, files)
		o := Options{Root: dir, AllocDir: dir}
		edit(&o)
		r, err := Run(t.Context(), o)
		if (err != nil) != wantErr {
			t.Errorf("error %v", err)
		}
		if err == nil && r.Resources.Cpu.CpuShares != wantShares {
			t.Errorf("%d MHz, want %d", r.Resources.Cpu.CpuShares, wantShares)
		}
	}
	f(map[string]string{"proc/cpuinfo": cpuinfo}, func(*Options) {}, 4200, false)
	f(map[string]string{"proc/cpuinfo": "processor: 0\nprocessor: 1\n"}, func(*Options) {}, 2*fallbackMHz, false)
	f(map[string]string{"proc/cpuinfo": cpuinfo}, func(o *Options) { o.CPUTotalCompute = 77 }, 77, false)
	f(map[string]string{"proc/cpuinfo": cpuinfo}, func(o *Options) { o.ReservableCores = "0" }, 4200, false)
	f(map[string]string{"proc/cpuinfo": cpuinfo}, func(o *Options) { o.ReservableCores = "1" }, 0, true)
	f(map[string]string{"proc/cpuinfo": cpuinfo}, func(o *Options) { o.ReservableCores = "x" }, 0, true)
}

func TestCgroupVersions(t *testing.T) {
	f := func(file, want string) {
		t.Helper()
		r := &Result{Attributes: map[string]string{}}
		cgroup(Options{Root: root(t, map[string]string{file: ""})}, r)
		if got := r.Attributes["unique.cgroup.version"]; got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
	f("sys/fs/cgroup/cgroup.controllers", "v2")
	f("sys/fs/cgroup/unified/cgroup.controllers", "hybrid")
	f("sys/fs/cgroup/memory/tasks", "v1")
	f("sys/fs/other", "")
}

func TestParseCores(t *testing.T) {
	f := func(in string, want []uint16, ok bool) {
		t.Helper()
		got, err := ParseCores(in)
		if (err == nil) != ok || ok && !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
	f("", nil, true)
	f("0", []uint16{0}, true)
	f("0-3, 6,2", []uint16{0, 1, 2, 3, 6}, true)
	f("65535", []uint16{65535}, true)
	f("3-1", nil, false)
	f("-1", nil, false)
	f("65536", nil, false)
	f("a", nil, false)
	f("1-2-3", nil, false)
}

func TestDefaultRoute(t *testing.T) {
	table := "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n" +
		"eth1\t0000FEA9\t00000000\t0001\t0\t0\t0\t0000FFFF\n" + "eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\n"
	dir := root(t, map[string]string{"route": table})
	if got := defaultRoute(filepath.Join(dir, "route")); got != "eth0" {
		t.Errorf("default route over %q", got)
	}
	if got := defaultRoute(filepath.Join(dir, "none")); got != "" {
		t.Errorf("default route over %q without a table", got)
	}
}

func FuzzParseCores(f *testing.F) {
	f.Add("0-3,6")
	f.Fuzz(func(t *testing.T, s string) {
		cores, err := ParseCores(s)
		if err == nil && len(cores) > 65536 {
			t.Errorf("%d cores of %q", len(cores), s)
		}
	})
}
