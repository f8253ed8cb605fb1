package fingerprint

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/mem"

	"github.com/nomadish/nomadish/structs"
)

// host finds the names of the machine, its kernel and its system.
func host(o Options, r *Result) {
	name, err := os.Hostname()
	if err != nil {
		r.warn(fmt.Errorf("host name: %w", err))
	}
	r.Hostname = name
	r.set("unique.hostname", name)
	r.set("kernel.name", runtime.GOOS)
	r.set("kernel.arch", readLine(filepath.Join(o.Root, "proc/sys/kernel/arch")))
	r.set("kernel.version", readLine(filepath.Join(o.Root, "proc/sys/kernel/osrelease")))
	release := osRelease(filepath.Join(o.Root, "etc/os-release"))
	id := release["ID"]
	if id == "" {
		id = runtime.GOOS
	}
	r.set("os.name", id)
	r.set("os.version", release["VERSION_ID"])
	r.set("os.build", release["BUILD_ID"])
	r.set("os.signals", "SIGABRT,SIGALRM,SIGBUS,SIGCHLD,SIGCONT,SIGFPE,SIGHUP,SIGILL,SIGINT,SIGIO,SIGIOT,SIGKILL,SIGPIPE,"+
		"SIGPROF,SIGQUIT,SIGSEGV,SIGSTOP,SIGSYS,SIGTERM,SIGTRAP,SIGTSTP,SIGTTIN,SIGTTOU,SIGURG,SIGUSR1,SIGUSR2,SIGWINCH,SIGXCPU,SIGXFSZ")
}

func osRelease(path string) map[string]string {
	out := map[string]string{}
	f, err := os.Open(path)
	if err != nil {
		return out
	}
	defer f.Close() //nolint:errcheck // only read from
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if k, v, ok := strings.Cut(lines.Text(), "="); ok {
			out[strings.TrimSpace(k)] = strings.Trim(strings.TrimSpace(v), `"'`)
		}
	}
	return out
}

// cgroup finds which version of control groups is mounted: v2 (unified), v1, or
// both beside each other (hybrid).
func cgroup(o Options, r *Result) {
	base := filepath.Join(o.Root, "sys/fs/cgroup")
	exists := func(name string) bool { _, err := os.Stat(filepath.Join(base, name)); return err == nil }
	version, number := "", ""
	switch {
	case exists("cgroup.controllers"):
		version, number = "v2", "2"
	case exists("unified/cgroup.controllers"):
		version, number = "hybrid", "1"
	case exists("memory") || exists("cpu") || exists("cpuset"):
		version, number = "v1", "1"
	default:
		return
	}
	r.set("unique.cgroup.version", version)
	r.set("unique.cgroup.mountpoint", "/sys/fs/cgroup")
	r.set("os.cgroups.version", number)
}

func memory(ctx context.Context, o Options, r *Result) {
	total := int64(o.MemoryTotalMB)
	bytes := uint64(total) << 20 // not negative
	if total == 0 {
		m, err := mem.VirtualMemoryWithContext(ctx)
		if err != nil {
			r.warn(fmt.Errorf("memory: %w; set client memory_total_mb", err))
			return
		}
		bytes = m.Total
		total = int64(m.Total >> 20) // MiB of a machine
	}
	r.Resources.Memory = structs.NodeMemoryResources{MemoryMB: total}
	r.set("memory.totalbytes", strconv.FormatUint(bytes, 10))
}

func storage(ctx context.Context, o Options, r *Result) {
	u, err := disk.UsageWithContext(ctx, o.AllocDir)
	if err != nil {
		r.warn(fmt.Errorf("disk of %s: %w; set client disk_total_mb and disk_free_mb", o.AllocDir, err))
		u = &disk.UsageStat{}
	}
	total, free := u.Total, u.Free
	if o.DiskTotalMB > 0 {
		total = uint64(o.DiskTotalMB) << 20 // positive
	}
	if o.DiskFreeMB > 0 {
		free = uint64(o.DiskFreeMB) << 20 // positive
	}
	r.Resources.Disk = structs.NodeDiskResources{DiskMB: int64(free >> 20)} // MiB of a disk
	r.set("unique.storage.volume", u.Path)
	r.set("unique.storage.bytestotal", strconv.FormatUint(total, 10))
	r.set("unique.storage.bytesfree", strconv.FormatUint(free, 10))
}
