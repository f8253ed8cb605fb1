package gpu

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// pciPath is where a GPU is attached: its NUMA node, socket and PCIe bridges.
type pciPath struct {
	numa    int      // NUMA node; -1: not known
	socket  int      // processor package; -1: not known
	bridges []string // bus ids of the PCIe bridges above it, from the root port down
}

var unknownPath = pciPath{numa: -1, socket: -1}

// findPCIPath reads a GPU's PCI path from sysfs; false: the kernel does not know it (any
// more). root is where /sys is.
func findPCIPath(root, busID string) (pciPath, bool) {
	dir := filepath.Join(root, "sys/bus/pci/devices", busID)
	path, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return unknownPath, false
	}
	p := unknownPath
	// .../devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0: the host bridge,
	// the bridges, the device.
	parts := strings.Split(path, string(filepath.Separator))
	for i, part := range parts {
		if strings.HasPrefix(part, "pci") && strings.Contains(part, ":") && i+1 < len(parts) {
			p.bridges = parts[i+1 : len(parts)-1]
		}
	}
	if n, err := strconv.Atoi(line(filepath.Join(path, "numa_node"))); err == nil && n >= 0 {
		p.numa = n
	}
	p.socket = findSocket(root, p.numa)
	return p, true
}

// findSocket returns the processor package of a NUMA node. Firmware that does not report
// a GPU's NUMA node does no harm where there is one package only.
func findSocket(root string, numa int) int {
	if numa >= 0 {
		cpus := line(filepath.Join(root, "sys/devices/system/node", "node"+strconv.Itoa(numa), "cpulist"))
		first, _, _ := strings.Cut(strings.ReplaceAll(cpus, ",", "-"), "-")
		if s := packageOf(root, "cpu"+first); first != "" && s >= 0 {
			return s
		}
		return numa // a NUMA node without processors of its own is a location too
	}
	only := -1
	cpus, _ := filepath.Glob(filepath.Join(root, "sys/devices/system/cpu/cpu[0-9]*")) // the pattern is right
	for _, cpu := range cpus {
		s := packageOf(root, filepath.Base(cpu))
		if s < 0 {
			continue
		}
		if only >= 0 && s != only {
			return -1
		}
		only = s
	}
	return only
}

func packageOf(root, cpu string) int {
	n, err := strconv.Atoi(line(filepath.Join(root, "sys/devices/system/cpu", cpu, "topology/physical_package_id")))
	if err != nil {
		return -1
	}
	return n
}

// line is the first line of a small file; empty if there is none.
func line(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(first)
}

// libraryName is the driver's library.
const libraryName = "libnvidia-ml.so.1"

// Present reports whether anything hints at an NVIDIA driver or GPU: without that the
// probe is not even started. root is where /proc, /sys and /dev are.
func Present(root string) bool {
	for _, name := range []string{"proc/driver/nvidia/version", "dev/nvidiactl", "dev/dxg"} {
		if _, err := os.Stat(filepath.Join(root, name)); err == nil {
			return true
		}
	}
	for _, dir := range filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")) { // as a container's image may have it
		if _, err := os.Stat(filepath.Join(dir, libraryName)); dir != "" && err == nil {
			return true
		}
	}
	// The driver may be there and not be loaded: its library does that when it starts.
	vendors, _ := filepath.Glob(filepath.Join(root, "sys/bus/pci/devices/*/vendor")) // the pattern is right
	for _, v := range vendors {
		if line(v) == "0x10de" && strings.HasPrefix(line(filepath.Join(filepath.Dir(v), "class")), "0x03") {
			return true
		}
	}
	return false
}
