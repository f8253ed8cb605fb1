package structs_test

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

func TestNamespaceValidate(t *testing.T) {
	for want, n := range map[string]*structs.Namespace{
		"":                       {Name: "team-1", Description: "x", Meta: map[string]string{"a": "b"}},
		"missing namespace name": {},
		`invalid name "a_b".`:    {Name: "a_b"},
		`invalid name "*".`:      {Name: "*"},
		"at most 256 characters": {Name: "a", Description: strings.Repeat("é", 257)},
		"quotas are not":         {Name: "a", Quota: "q"},
		"node_pool_config":       {Name: "a", NodePoolConfiguration: &structs.NamespaceNodePoolConfiguration{}},
		"meta: the names":        {Name: "a", Meta: map[string]string{"a": strings.Repeat("b", structs.MaxNamespaceMeta)}},
		"a list has 65 entries":  {Name: "a", Capabilities: &structs.NamespaceCapabilities{DisabledNetworkModes: make([]string, 65)}},
	} {
		err := n.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

func TestNamespaceAdmits(t *testing.T) {
	job := func(driver, mode string) *structs.Job {
		g := &structs.TaskGroup{Name: "g", Tasks: []*structs.Task{{Name: "t", Driver: driver}}}
		if mode != "none" {
			g.Networks = []*structs.NetworkResource{{Mode: mode}}
		}
		return &structs.Job{ID: "j", TaskGroups: []*structs.TaskGroup{g}}
	}
	c := func(enabled, disabled, modes, notModes []string) *structs.NamespaceCapabilities {
		return &structs.NamespaceCapabilities{EnabledTaskDrivers: enabled, DisabledTaskDrivers: disabled, EnabledNetworkModes: modes, DisabledNetworkModes: notModes}
	}
	list := func(s ...string) []string { return s }
	for _, row := range []struct {
		of   *structs.NamespaceCapabilities
		job  *structs.Job
		want string
	}{
		{nil, job("exec", "bridge"), ""},
		{c(nil, nil, nil, nil), job("exec", "bridge"), ""},
		{c(list("exec"), nil, nil, nil), job("exec", "none"), ""},
		{c(list("docker"), nil, nil, nil), job("exec", "none"), `driver "exec" is not allowed in namespace "team"`},
		{c(list("exec"), list("exec"), nil, nil), job("exec", "none"), `driver "exec"`},
		{c(nil, nil, list("bridge"), nil), job("exec", "none"), ""}, // it requests no network
		{c(nil, nil, list("bridge"), nil), job("exec", ""), `network mode "host"`},
		{c(nil, nil, nil, list("bridge")), job("exec", "bridge"), `network mode "bridge"`},
	} {
		err := (&structs.Namespace{Name: "team", Capabilities: row.of}).Admits(row.job)
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v, want %q", row.of, err, row.want)
		}
	}
}
