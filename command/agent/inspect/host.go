package inspect

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/host"

	"github.com/nomadish/nomadish/structs"
)

const (
	// redacted stands for what may be secret.
	redacted = "<redacted>"
	// maxFile, maxList and maxText bound what is reported of a machine: bytes of a file, entries of a list, bytes of a text.
	maxFile = 64 << 10
	maxList = 256     // entries of a list about the host
	maxText = 4 << 10 // bytes of a text about the host; more is cut
)

// shownEnv are the variables whose values are shown; of all others only the names are.
var shownEnv = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "HOSTNAME", "TMPDIR", "XDG_RUNTIME_DIR",
	"INVOCATION_ID", "JOURNAL_STREAM", "SYSTEMD_EXEC_PID", "NOTIFY_SOCKET",
	"GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG", "GOTRACEBACK", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "LD_LIBRARY_PATH",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NOMADISH_REGION", "NOMAD_REGION", "NOMADISH_NAMESPACE", "NOMAD_NAMESPACE",
}

// Host returns what the machine is. What cannot be found out is left empty.
func (i *Inspector) Host(ctx context.Context, _ *structs.AgentHostRequest) (*structs.AgentHostReply, error) {
	if err := i.debugOnly("the host's data"); err != nil {
		return nil, err
	}
	return &structs.AgentHostReply{AgentID: i.opts.ID(), HostData: &structs.HostData{
		OS: system(ctx), Network: interfaces(), ResolvConf: firstOf("/etc/resolv.conf"), Hosts: firstOf("/etc/hosts"),
		Environment: environment(os.Environ()), Disk: disks(ctx),
	}}, nil
}

func system(ctx context.Context) string {
	info, err := host.InfoWithContext(ctx)
	if err != nil {
		return runtime.GOOS + " " + runtime.GOARCH
	}
	return structs.Clip(fmt.Sprintf("%s %s %s %s, kernel %s", info.OS, info.KernelArch, info.Platform, info.PlatformVersion, info.KernelVersion), maxText)
}

// interfaces are the machine's network interfaces.
func interfaces() []map[string]string {
	all, err := net.Interfaces()
	if err != nil {
		return []map[string]string{}
	}
	out := []map[string]string{}
	for _, one := range all[:min(len(all), maxList)] {
		shown := map[string]string{"name": one.Name, "flags": one.Flags.String(), "mtu": strconv.Itoa(one.MTU), "hardware_address": one.HardwareAddr.String()}
		if addrs, err := one.Addrs(); err == nil {
			texts := make([]string, 0, len(addrs))
			for _, a := range addrs {
				texts = append(texts, a.String())
			}
			shown["addresses"] = structs.Clip(strings.Join(texts, ", "), maxText)
		}
		out = append(out, shown)
	}
	return out
}

// firstOf returns the beginning of a file.
func firstOf(name string) string {
	f, err := os.Open(name) // one of two constants
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // read only
	raw, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(raw), "\ufffd")
}

// environment shows variables without the values that may be secret.
func environment(vars []string) map[string]string {
	out := map[string]string{}
	for _, one := range vars[:min(len(vars), 4*maxList)] {
		name, value, _ := strings.Cut(one, "=")
		if !slices.Contains(shownEnv, name) {
			value = redacted
		}
		out[structs.Clip(name, maxText)] = structs.Clip(value, maxText)
	}
	return out
}

// disks are the local disks by the directories that they are mounted at. Network file systems are left out: one whose server
// is gone would not answer.
func disks(ctx context.Context) map[string]structs.DiskUsage {
	out := map[string]structs.DiskUsage{}
	mounts, err := disk.PartitionsWithContext(ctx, false)
	if err != nil {
		return out
	}
	for _, m := range mounts[:min(len(mounts), maxList)] {
		if use, err := disk.UsageWithContext(ctx, m.Mountpoint); err == nil {
			out[m.Mountpoint] = structs.DiskUsage{DiskMB: int64(use.Total >> 20), UsedMB: int64(use.Used >> 20)} // of MiB
		}
	}
	return out
}
