package structs

import (
	"cmp"
	"strconv"
	"strings"
)

// HostPort returns where what runs on the node is reached: the node's address, with the first of its ports if it has any.
func (n *Node) HostPort(ports []PortMapping) string {
	host := n.Attributes["unique.network.ip-address"]
	if at := strings.LastIndexByte(n.HTTPAddr, ':'); host == "" && at >= 0 {
		host = strings.Trim(n.HTTPAddr[:at], "[]")
	}
	host = cmp.Or(host, n.Name, n.ID)
	if len(ports) == 0 {
		return host
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]" // an IPv6 address
	}
	return host + ":" + strconv.Itoa(ports[0].Value)
}
