package config

import (
	"fmt"
	"strings"

	"github.com/nomadish/nomadish/client/users"
)

// The names of Nomad's client options about users.
const (
	optionDenylist       = "user.denylist"
	optionCheckedDrivers = "user.checked_drivers"
	// defaultCheckedDrivers are those whose tasks Nomad checks unless the option says otherwise.
	defaultCheckedDrivers = "exec,qemu,java"
)

// Policy returns as whom tasks may run.
func (cl *Client) Policy() (users.Policy, error) {
	var p users.Policy
	var err error
	if p.Allowed, err = users.ParseSet(cl.Users.Allowed); err != nil {
		return p, fmt.Errorf("client.users.allowed: %w", err)
	}
	if p.Denied, err = users.ParseSet(cl.Users.Denied); err != nil {
		return p, fmt.Errorf("client.users.denied: %w", err)
	}
	denylist, stated := cl.Options[optionDenylist]
	if !stated {
		return p, nil
	}
	denied, err := ParseSet(denylist)
	if err != nil {
		return p, fmt.Errorf("client.options: %s: %w", optionDenylist, err)
	}
	drivers, stated := cl.Options[optionCheckedDrivers]
	if !stated {
		drivers = defaultCheckedDrivers
	}
	p.DeniedBy = map[string]users.Set{}
	for _, name := range listed(drivers) {
		p.DeniedBy[name] = denied
	}
	return p, nil
}

// ParseSet reads a set of users or groups that is written with commas.
func ParseSet(text string) (users.Set, error) { return users.ParseSet(listed(text)) }

// listed splits a text at commas; empty parts do not count.
func listed(text string) (out []string) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// users checks the users block, and what Nomad's options and raw_exec's plugin block say of users.
func (k *checker) users() {
	if _, err := k.c.Client.Policy(); err != nil {
		path, text, _ := strings.Cut(err.Error(), ": ")
		k.bad(path, ": %s", text)
	}
	u := k.c.Client.Users
	if u.AllocGroupMin < -1 || u.AllocGroupMax < 0 || u.AllocGroupMin > 0 && u.AllocGroupMax > 0 && u.AllocGroupMin > u.AllocGroupMax {
		k.bad("client.users.alloc_group_min", ", alloc_group_max %d to %d: must be a range of group IDs, or alloc_group_min = -1", u.AllocGroupMin, u.AllocGroupMax)
	}
	p := k.c.Plugins["raw_exec"]
	if p == nil {
		return
	}
	for _, name := range []string{"denied_host_uids", "denied_host_gids"} {
		if text, ok := p.Config[name].(string); ok {
			if _, err := ParseSet(text); err != nil {
				k.bad("plugin.raw_exec.config."+name, ": %v", err)
			}
		}
	}
}
