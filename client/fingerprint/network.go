package fingerprint

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// defaultSpeed is assumed for an interface that reports none, in Mbit/s.
const defaultSpeed = 1000

// network finds the interface that tasks get, with its addresses.
func network(o Options, r *Result) {
	iface, err := pickInterface(o)
	if err != nil {
		r.warn(err)
		return
	}
	addrs, err := iface.Addrs()
	if err != nil {
		r.warn(fmt.Errorf("network interface %s: %w", iface.Name, err))
		return
	}
	speed := defaultSpeed
	if n, err := strconv.Atoi(readLine(filepath.Join(o.Root, "sys/class/net", iface.Name, "speed"))); err == nil && n > 0 {
		speed = n
	}
	res := &structs.NodeNetworkResource{
		Mode: structs.NetworkModeHost, Device: iface.Name, MacAddress: iface.HardwareAddr.String(), Speed: speed,
	}
	for _, a := range addrs {
		ipnet, ok := a.(*net.IPNet)
		if !ok || ipnet.IP.IsLinkLocalUnicast() {
			continue
		}
		ip, family, bits := ipnet.IP.String(), "ipv4", 32
		if ipnet.IP.To4() == nil {
			family, bits = "ipv6", 128
		}
		res.Addresses = append(res.Addresses, structs.NodeNetworkAddress{Family: family, Alias: "default", Address: ip})
		r.Resources.Networks = append(r.Resources.Networks, &structs.NetworkResource{
			Mode: structs.NetworkModeHost, Device: iface.Name, CIDR: fmt.Sprintf("%s/%d", ip, bits), IP: ip, MBits: speed,
		})
		if r.Attributes["unique.network.ip-address"] == "" {
			r.set("unique.network.ip-address", ip)
		}
	}
	if len(res.Addresses) == 0 {
		r.warn(fmt.Errorf("network interface %s: has no address; tasks get no ports; set client network_interface to another", iface.Name))
		return
	}
	r.Resources.NodeNetworks = []*structs.NodeNetworkResource{res}
}

// pickInterface takes the interface that is named, else that of the default route,
// else the first that is up, the loopback last.
func pickInterface(o Options) (*net.Interface, error) {
	if o.Interface != "" {
		i, err := net.InterfaceByName(o.Interface)
		if err != nil {
			return nil, fmt.Errorf("network interface %q: %w", o.Interface, err)
		}
		return i, nil
	}
	if name := defaultRoute(filepath.Join(o.Root, "proc/net/route")); name != "" {
		if i, err := net.InterfaceByName(name); err == nil {
			return i, nil
		}
	}
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("network interfaces: %w", err)
	}
	var loopback *net.Interface
	for k := range all {
		i := &all[k]
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		if i.Flags&net.FlagLoopback != 0 {
			loopback = i
			continue
		}
		if addrs, err := i.Addrs(); err == nil && len(addrs) > 0 {
			return i, nil
		}
	}
	if loopback == nil {
		return nil, errors.New("network interfaces: none is up; tasks get no ports; set client network_interface")
	}
	return loopback, nil
}

// defaultRoute reads the interface of the default route off the kernel's table.
func defaultRoute(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // only read from
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if c := strings.Fields(lines.Text()); len(c) > 7 && c[1] == "00000000" && c[7] == "00000000" {
			return c[0]
		}
	}
	return ""
}
