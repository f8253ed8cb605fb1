package structs

import "strings"

// CertDomain ends the names by which certificates state a role, whatever else a cluster's
// domain is.
const CertDomain = "nomad"

// The roles that a certificate can state.
const (
	CertServer = "server"
	CertClient = "client"
	CertCLI    = "cli"
)

// CertName is the DNS name by which a certificate states a role in a region, such as
// server.global.nomad.
func CertName(role, region string) string { return role + "." + region + "." + CertDomain }

// ParseCertName reads a name that CertName made; ok is false for any other. Letters may be
// of either case, as in DNS. A wildcard states no role.
func ParseCertName(name string) (role, region string, ok bool) {
	name = strings.ToLower(name)
	role, rest, _ := strings.Cut(name, ".")
	region, ok = strings.CutSuffix(rest, "."+CertDomain)
	if !ok || region == "" || region == "*" || (role != CertServer && role != CertClient && role != CertCLI) {
		return "", "", false
	}
	return role, region, true
}
