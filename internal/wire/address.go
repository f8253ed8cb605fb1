package wire

import (
	"errors"
	"net"
	"strconv"
)

// HostPort splits an address to listen on: host:port, with a port as a number.
func HostPort(addr string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(text, 10, 16)
	return host, int(n), err // 16 bits
}

// Advertised resolves the address, host:port, that others learn by gossip: its members know each other by IP address. An unspecified
// one is an error.
func Advertised(addr string) (ip string, port int, err error) {
	a, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return "", 0, err
	}
	if a.IP == nil || a.IP.IsUnspecified() {
		return "", 0, errors.New("others cannot reach an unspecified address")
	}
	return a.IP.String(), a.Port, nil
}
