package fingerprint

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// fallbackMHz counts for a core whose speed is not reported (many virtual machines).
const fallbackMHz = 1000

// core is a processor that is online.
type core struct {
	id  uint16
	mhz int
}

// cpu finds the cores and their speed.
func cpu(o Options, r *Result) error {
	cores, model := readCores(o.Root)
	if len(cores) == 0 {
		r.warn(fmt.Errorf("processors: not listed in /proc/cpuinfo; %d are assumed", runtime.NumCPU()))
		for i := range runtime.NumCPU() {
			cores = append(cores, core{id: uint16(i)}) // far fewer
		}
	}
	total, fastest := 0, 0
	ids := make([]uint16, 0, len(cores))
	for i := range cores {
		if mhz := coreMHz(o.Root, cores[i].id); mhz > 0 {
			cores[i].mhz = mhz
		}
		if cores[i].mhz == 0 {
			cores[i].mhz = fallbackMHz
		}
		total += cores[i].mhz
		fastest = max(fastest, cores[i].mhz)
		ids = append(ids, cores[i].id)
	}
	if o.CPUTotalCompute > 0 {
		total = o.CPUTotalCompute
	}
	reservable := ids
	if o.ReservableCores != "" {
		wanted, err := ParseCores(o.ReservableCores)
		if err != nil {
			return fmt.Errorf("client reservable_cores: %w", err)
		}
		for _, c := range wanted {
			if !slices.Contains(ids, c) {
				return fmt.Errorf("client reservable_cores: core %d is not online; the node has %d to %d", c, ids[0], ids[len(ids)-1])
			}
		}
		reservable = wanted
	}
	r.Resources.Cpu = structs.NodeCpuResources{
		CpuShares: int64(total), TotalCpuCores: uint16(len(cores)), ReservableCpuCores: reservable, // Linux has at most 8192
	}
	r.set("cpu.arch", runtime.GOARCH)
	r.set("arch", runtime.GOARCH)
	r.set("cpu.modelname", model)
	r.set("cpu.numcores", strconv.Itoa(len(cores)))
	r.set("cpu.reservablecores", strconv.Itoa(len(reservable)))
	r.set("cpu.frequency", strconv.Itoa(fastest))
	r.set("cpu.totalcompute", strconv.Itoa(total))
	r.set("cpu.usablecompute", strconv.Itoa(total))
	numa(o, r)
	return nil
}

// readCores reads /proc/cpuinfo.
func readCores(root string) (cores []core, model string) {
	f, err := os.Open(filepath.Join(root, "proc/cpuinfo"))
	if err != nil {
		return nil, ""
	}
	defer f.Close() //nolint:errcheck // only read from
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), ":")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(name) {
		case "processor":
			if id, err := strconv.ParseUint(value, 10, 16); err == nil {
				cores = append(cores, core{id: uint16(id)})
			}
		case "model name":
			if model == "" {
				model = value
			}
		case "cpu MHz":
			if mhz, err := strconv.ParseFloat(value, 64); err == nil && len(cores) > 0 {
				cores[len(cores)-1].mhz = int(mhz)
			}
		}
	}
	return cores, model
}

// coreMHz is what the kernel reports as a core's speed when nothing slows it: its base
// frequency, else its most. 0: nothing.
func coreMHz(root string, id uint16) int {
	dir := filepath.Join(root, "sys/devices/system/cpu", fmt.Sprintf("cpu%d", id), "cpufreq")
	for _, name := range []string{"base_frequency", "cpuinfo_max_freq"} {
		if khz, err := strconv.Atoi(readLine(filepath.Join(dir, name))); err == nil && khz > 0 {
			return khz / 1000
		}
	}
	return 0
}

// numa counts the NUMA nodes and their cores.
func numa(o Options, r *Result) {
	dirs, err := filepath.Glob(filepath.Join(o.Root, "sys/devices/system/node/node[0-9]*"))
	if err != nil || len(dirs) == 0 {
		return
	}
	r.set("numa.node.count", strconv.Itoa(len(dirs)))
	for _, dir := range dirs {
		id := strings.TrimPrefix(filepath.Base(dir), "node")
		r.set("numa.node"+id+".cores", readLine(filepath.Join(dir, "cpulist")))
	}
}

// readLine is the first line of a small file; empty if there is none.
func readLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(line)
}
