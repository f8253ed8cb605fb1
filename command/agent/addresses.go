package agent

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/command/agent/config"
)

// join makes host:port; the host may have brackets already.
func joinHostPort(host string, port int) string {
	return net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(port))
}

// hostOr is the host of one service, or that of all.
func hostOr(one, all string) string {
	if one != "" {
		return one
	}
	return all
}

// httpHosts are the hosts that the HTTP API listens on.
func httpHosts(c *config.Config) []string {
	if hosts := strings.Fields(c.Addresses.HTTP); len(hosts) > 0 {
		return hosts
	}
	return []string{c.BindAddr}
}

// ownHosts returns the names and addresses that the configuration states for the agent, and the host's own name. Callers may
// address the HTTP API by each of them.
func ownHosts(c *config.Config) []string {
	hosts := []string{c.Name, c.BindAddr}
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	for _, a := range []config.Addresses{c.Addresses, c.Advertise} {
		for _, stated := range []string{a.HTTP, a.RPC, a.Serf, a.SerfWAN, a.ClientGossip} {
			for _, host := range strings.Fields(stated) {
				if h, _, err := net.SplitHostPort(host); err == nil {
					host = h
				}
				hosts = append(hosts, host)
			}
		}
	}
	return hosts
}

// advertised is the address that others reach a service at: the one stated, with
// the bound port where it names none, or the bound one, with this machine's own
// address where it is bound to all. bound's port may be 0.
func advertised(stated, bound string) (string, error) {
	boundHost, boundPort, err := net.SplitHostPort(bound)
	if err != nil {
		return "", fmt.Errorf("address %s: %w", bound, err)
	}
	if stated != "" {
		if _, _, err := net.SplitHostPort(stated); err == nil {
			return stated, nil
		}
		return net.JoinHostPort(strings.Trim(stated, "[]"), boundPort), nil
	}
	if ip := net.ParseIP(boundHost); ip == nil || !ip.IsUnspecified() {
		return bound, nil
	}
	own, err := ownAddress()
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(own, boundPort), nil
}

// ownAddress is this machine's first address that others can reach, private ones
// before public ones, IPv4 before IPv6; loopback if there is no other.
func ownAddress() (string, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("find this machine's address: %w (name it under advertise)", err)
	}
	best, bestRank := "", 100
	for _, a := range addrs {
		network, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		ip, rank := network.IP, 0
		if ip.IsLinkLocalUnicast() || ip.IsMulticast() {
			continue
		}
		if ip.To4() == nil {
			rank += 4
		}
		if !ip.IsPrivate() {
			rank += 2
		}
		if ip.IsLoopback() {
			rank += 16
		}
		if rank < bestRank {
			best, bestRank = ip.String(), rank
		}
	}
	if best == "" {
		return "", errors.New("find this machine's address: it has none (name one under advertise)")
	}
	return best, nil
}

// localAddr is how this machine reaches a listener of its own.
func localAddr(bound string) string {
	host, port, err := net.SplitHostPort(bound)
	if err != nil {
		return bound
	}
	ip := net.ParseIP(host)
	switch {
	case ip == nil || !ip.IsUnspecified():
		return bound
	case ip.To4() != nil:
		return net.JoinHostPort("127.0.0.1", port)
	}
	return net.JoinHostPort("::1", port)
}
