package sim

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// Options is what simulated nodes have from their agent.
type Options struct {
	// Seed derives the nodes' IDs and secrets: the same seed, the same nodes.
	Seed       string
	Datacenter string
	Class      string
	Pool       string
	HTTPAddr   string
	Version    string
	// Driver is the driver that they have.
	Driver                 string
	MinDynamicPort         int
	MaxDynamicPort         int
	SchedulingEligibility  string
	Meta                   map[string]string
	FingerprintedAt        time.Time
	AdvertiseAddress       string // the IP that tasks get; "127.0.0.1" if empty
	ReservedHostPortsRange string
}

// Nodes makes the nodes of shapes, in order: <shape>-<i> with i from 0. They share parts, and must not be changed.
func Nodes(layouts []Layout, o Options) []*structs.Node {
	var out []*structs.Node
	for _, s := range layouts {
		var first *structs.Node
		for i := range s.Count {
			n := s.node(i, o)
			if first == nil {
				first = n
			}
			shareWith(n, first)
			out = append(out, n)
		}
	}
	return out
}

// shareWith has a node refer to the parts of another one of its shape that are the same: there may be 50,000.
func shareWith(n, other *structs.Node) {
	n.Drivers, n.Meta, n.Links, n.ReservedResources = other.Drivers, other.Meta, other.Links, other.ReservedResources
	for k, v := range other.Attributes {
		if n.Attributes[k] == v {
			n.Attributes[k] = v // the same bytes
		}
	}
	mine, others := n.NodeResources, other.NodeResources
	mine.Cpu, mine.Networks, mine.NodeNetworks = others.Cpu, others.Networks, others.NodeNetworks
	if n.ComputedClass == other.ComputedClass {
		n.ComputedClass = other.ComputedClass
	}
}

func or2(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (s Layout) node(i int, o Options) *structs.Node {
	name := fmt.Sprintf("%s-%d", s.Name, i)
	ip := or2(o.AdvertiseAddress, "127.0.0.1")
	n := &structs.Node{
		ID:       structs.DeriveID(o.Seed+"/node/"+s.Name, uint64(i)),   // i counts from 0
		SecretID: structs.DeriveID(o.Seed+"/secret/"+s.Name, uint64(i)), // i counts from 0
		Name:     name, Datacenter: or2(s.Datacenter, o.Datacenter), NodeClass: or2(s.Class, o.Class),
		NodePool: or2(s.Pool, o.Pool), HTTPAddr: o.HTTPAddr,
		Meta: maps.Clone(o.Meta), Links: map[string]string{},
		Status: structs.NodeStatusReady, SchedulingEligibility: o.SchedulingEligibility,
		NodeResources: s.resources(name, ip, o),
		ReservedResources: &structs.NodeReservedResources{
			Networks: structs.NodeReservedNetworkResources{ReservedHostPorts: o.ReservedHostPortsRange},
		},
		Drivers: map[string]*structs.DriverInfo{o.Driver: {
			Attributes: map[string]string{"driver." + o.Driver: "1"}, Detected: true, Healthy: true,
			HealthDescription: "Healthy", UpdateTime: o.FingerprintedAt,
		}},
	}
	if n.Meta == nil {
		n.Meta = map[string]string{}
	}
	maps.Copy(n.Meta, s.Meta)
	n.Attributes = map[string]string{
		"cpu.arch": "amd64", "arch": "amd64", "cpu.numcores": strconv.Itoa(s.Cores), "cpu.frequency": strconv.Itoa(s.MHz),
		"cpu.totalcompute": strconv.Itoa(s.Cores * s.MHz), "cpu.modelname": "simulated", "kernel.name": "linux",
		"os.name": "simulated", "memory.totalbytes": strconv.FormatInt(s.Memory<<20, 10),
		"unique.hostname": name, "unique.network.ip-address": ip,
		"nomad.version": o.Version, "nomadish.version": o.Version, "nomadish.simulated": "1",
		"driver." + o.Driver: "1",
	}
	n.ComputeClass()
	return n
}

func (s Layout) resources(name, ip string, o Options) *structs.NodeResources {
	cores := make([]uint16, s.Cores)
	for i := range cores {
		cores[i] = uint16(i) // at most 65535, see Validate
	}
	r := &structs.NodeResources{
		Cpu: structs.NodeCpuResources{
			CpuShares: int64(s.Cores) * int64(s.MHz), TotalCpuCores: uint16(s.Cores), ReservableCpuCores: cores, // at most 65535, see Validate
		},
		Memory: structs.NodeMemoryResources{MemoryMB: s.Memory}, Disk: structs.NodeDiskResources{DiskMB: s.Disk},
		Networks: []*structs.NetworkResource{{Mode: structs.NetworkModeHost, Device: "sim0", CIDR: ip + "/32", IP: ip, MBits: 1000}},
		NodeNetworks: []*structs.NodeNetworkResource{{
			Mode: structs.NetworkModeHost, Device: "sim0", Speed: 1000,
			Addresses: []structs.NodeNetworkAddress{{Family: "ipv4", Alias: "default", Address: ip}},
		}},
		MinDynamicPort: o.MinDynamicPort, MaxDynamicPort: o.MaxDynamicPort, Slots: s.Slots,
	}
	r.Devices, r.Topology = s.gpuTree(name)
	return r
}
