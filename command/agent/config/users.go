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
	// defaultCheckedDrivers are those whose tasks Nomad checks unless the option names others.
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
	denied, err := users.ParseSet(listed(denylist))
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

// DeniedHostIDs returns the user and group IDs that no task of raw_exec runs with.
func (c *Config) DeniedHostIDs() (uids, gids users.Set, err error) {
	p := c.Plugins["raw_exec"]
	if p == nil {
		return uids, gids, nil
	}
	for name, set := range map[string]*users.Set{"denied_host_uids": &uids, "denied_host_gids": &gids} {
		text := ""
		if v := p.Config[name]; v != nil {
			text = fmt.Sprint(v) // one number may be written as such
		}
		if *set, err = users.ParseSet(listed(text)); err == nil && set.Named() {
			err = fmt.Errorf("%q: must be numbers and ranges of numbers", text)
		}
		if err != nil {
			return uids, gids, fmt.Errorf("plugin.raw_exec.config.%s: %w", name, err)
		}
	}
	return uids, gids, nil
}

// listed splits a text at commas; empty parts do not count.
func listed(text string) (out []string) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// users checks the users block, and what Nomad's options and raw_exec's plugin block state about users.
func (k *checker) users() {
	if _, err := k.c.Client.Policy(); err != nil {
		path, text, _ := strings.Cut(err.Error(), ": ")
		k.bad(path, ": %s", text)
	}
	u := k.c.Client.Users
	if u.AllocGroupMin < -1 || u.AllocGroupMax < 0 || u.AllocGroupMin > 0 && u.AllocGroupMax > 0 && u.AllocGroupMin > u.AllocGroupMax {
		k.bad("client.users.alloc_group_min", ", alloc_group_max %d to %d: must be a range of group IDs, or alloc_group_min = -1", u.AllocGroupMin, u.AllocGroupMax)
	}
	if _, _, err := k.c.DeniedHostIDs(); err != nil {
		path, text, _ := strings.Cut(err.Error(), ": ")
		k.bad(path, ": %s", text)
	}
}
