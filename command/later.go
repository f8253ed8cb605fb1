package command

import (
	"fmt"
	"slices"
	"strings"
)

// laterFamilies are the commands of Nomad that are not there yet, by their reasons, in the order of the documentation. The
// names of their groups are among them. No command that is registered may be one of them.
var laterFamilies = []laterFamily{
	{"there is no access control yet", []string{
		"acl", "acl auth-method", "acl auth-method create", "acl auth-method delete", "acl auth-method info",
		"acl auth-method list", "acl auth-method update", "acl binding-rule", "acl binding-rule create",
		"acl binding-rule delete", "acl binding-rule info", "acl binding-rule list", "acl binding-rule update",
		"acl bootstrap", "acl policy", "acl policy apply", "acl policy delete", "acl policy info", "acl policy list",
		"acl policy self", "acl role", "acl role create", "acl role delete", "acl role info", "acl role list",
		"acl role update", "acl token", "acl token create", "acl token delete", "acl token info", "acl token list",
		"acl token self", "acl token update", "login", "node identity", "node identity get", "node identity renew",
		"node intro", "node intro create",
	}},
	{"there are no deployments and canaries yet", []string{
		"deployment", "deployment fail", "deployment list", "deployment pause", "deployment promote",
		"deployment resume", "deployment status", "deployment unblock", "job deployments", "job promote",
	}},
	{"periodic and parameterized jobs do not run yet", []string{"job dispatch", "job periodic", "job periodic force"}},
	{"versions of a job cannot be tagged yet", []string{"job tag", "job tag apply", "job tag unset"}},
	{"commands cannot be run inside allocations yet", []string{"action", "alloc exec", "exec", "job action"}},
	{"services are not registered or checked yet", []string{
		"alloc checks", "service", "service delete", "service info", "service list",
	}},
	{"tasks have no schedule yet", []string{"alloc pause"}},
	{"there are no variables yet", []string{"var", "var get", "var init", "var list", "var lock", "var purge", "var put"}},
	{"host volumes are declared in the configuration of clients; dynamic and CSI volumes are not supported yet", []string{
		"plugin", "plugin status", "volume", "volume claim", "volume claim delete", "volume claim list",
		"volume create", "volume delete", "volume deregister", "volume detach", "volume init", "volume register",
		"volume snapshot", "volume snapshot create", "volume snapshot delete", "volume snapshot list",
		"volume status",
	}},
	{"the signing key of the servers cannot be rotated yet", []string{
		"operator root", "operator root keyring", "operator root keyring list", "operator root keyring remove",
		"operator root keyring rotate",
	}},
	{"the logs of systemd units cannot be exported yet; `monitor` streams the agent's log", []string{"monitor export"}},
	{"a client's local state cannot be printed yet", []string{"operator client-state"}},
	{"the Raft log is kept in BoltDB, and there is no other backend to migrate to", []string{"operator raft migrate-backend"}},
	{"the contents of a snapshot cannot be printed or redacted yet; `operator snapshot inspect` lists its tables", []string{
		"operator snapshot redact", "operator snapshot state",
	}},
	{"there is no utilization report", []string{"operator utilization"}},
	{"there are no quotas yet", []string{
		"quota", "quota apply", "quota delete", "quota init", "quota inspect", "quota list", "quota status",
	}},
	{"there are no recommendations for the resources of tasks yet", []string{
		"recommendation", "recommendation apply", "recommendation dismiss", "recommendation info",
		"recommendation list",
	}},
	{"there are no Sentinel policies", []string{
		"sentinel", "sentinel apply", "sentinel delete", "sentinel list", "sentinel read",
	}},
	{"no license is needed", []string{"license get"}},
	{"there is no integration with Consul or Vault", []string{"setup", "setup consul", "setup vault"}},
	{"there is no web interface", []string{"ui"}},
	{"the agent does not run on Windows", []string{
		"windows", "windows service", "windows service install", "windows service uninstall",
	}},
}

// laterFamily is commands that are missing for the same reason.
type laterFamily struct {
	reason string // a clause that can follow a colon
	names  []string
}

// laterReason returns why a command is not there yet, or "". It looks through the list: every command calls it once or twice
// when it starts, for which a map does not pay.
func laterReason(name string) string {
	for _, f := range laterFamilies {
		if slices.Contains(f.names, name) {
			return f.reason
		}
	}
	return ""
}

// later returns the longest name of laterFamilies that a command line begins with, or "" if the name of a registered
// command is longer: what follows is that command's affair.
func later(args []string, registered commands) string {
	found, name := "", ""
	for _, word := range args {
		if strings.HasPrefix(word, "-") {
			break
		}
		name = beneath(name, word)
		if _, there := registered[name]; there {
			found = ""
		}
		if laterReason(name) != "" {
			found = name
		}
	}
	return found
}

// laterText is the line that answers a command of laterFamilies.
func laterText(name string) string {
	return fmt.Sprintf("nomadish: %q is not there yet: %s", name, laterReason(name))
}
