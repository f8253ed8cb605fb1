package reference

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/command/agent/config"
	httpapi "github.com/nomadish/nomadish/command/agent/http"
	"github.com/nomadish/nomadish/structs"
)

// features are what missing routes belong to, by the beginning of their paths: the first row that fits counts.
var features = [][2]string{
	{"/v1/acl/", "Access control lists (ACLs)"},
	{"/v1/volume", "Volumes: CSI and dynamic host volumes"},
	{"/v1/plugin", "Volumes: CSI and dynamic host volumes"},
	{"/v1/deployment", "Deployments"},
	{"/v1/service", "Service discovery and checks"},
	{"/v1/job/*/services", "Service discovery and checks"},
	{"/v1/allocation/*/services", "Service discovery and checks"},
	{"/v1/allocation/*/checks", "Service discovery and checks"},
	{"/v1/client/allocation/*/checks", "Service discovery and checks"},
	{"/v1/var", "Variables"},
	{"/v1/operator/keyring", "The keyring of variables and identities"},
	{"/.well-known/", "Workload identities"},
	{"/v1/client/identity", "Identities of nodes"},
	{"/v1/namespace", "Namespaces other than `default`"},
	{"/v1/job/*/periodic", "Periodic jobs"},
	{"/v1/job/*/dispatch", "Parameterized jobs"},
	{"/v1/job/*/action", "Actions"},
	{"/v1/job/*/tag", "Tags of job versions"},
	{"/v1/job/*/versions/*/tag", "Tags of job versions"},
	{"/v1/jobs/statuses", "The job list of Nomad's web interface"},
	{"/v1/client/allocation/*/snapshot", "Migrating data (`ephemeral_disk { migrate }`)"},
	{"/v1/client/allocation/*/pause", "Task schedules"},
	{"/v1/agent/monitor", "Exporting an agent's log (`monitor export`)"},
	{"/v1/sentinel/", "Nomad Enterprise"},
	{"/v1/quota", "Nomad Enterprise"},
	{"/v1/recommendation", "Nomad Enterprise"},
	{"/v1/operator/license", "Nomad Enterprise"},
	{"/v1/operator/utilization", "Nomad Enterprise"},
	{"/v1/operator/upgrade-check", "Checks before an upgrade"},
}

// others is what a missing route belongs to that no row is of.
const others = "Others"

func featureOf(path string) string {
	for _, row := range features {
		if strings.HasPrefix(path, row[0]) {
			return row[1]
		}
	}
	return others
}

// routes are those that answer 501, and those that answer always the same.
func routes() []Section {
	var missing grouped
	for _, feature := range append(slices.Clone(features), [2]string{"", others}) {
		for _, r := range httpapi.MissingRoutes() {
			if code := Code(r.String()); featureOf(r.Path) == feature[1] && !missing.has(feature[1], code) {
				missing.add(feature[1], code)
			}
		}
	}
	return []Section{{
		Title: "HTTP routes that answer 501",
		Text: "A `*` stands for a name. Where methods are stated, the route answers all others. " +
			"The answer is `501` with the text `…: Nomad has it, this server does not yet`.",
		Head: []string{"What is missing", "Routes"}, Rows: missing.rows(),
	}}
}

// specification lists the fields of a job that have no effect.
func specification() Section {
	var fields grouped
	more := ""
	for _, f := range structs.FieldsWithoutEffect() {
		name := Code(f.Name)
		switch {
		case f.JSONOnly:
			name += " (in JSON only)"
		case f.Default != "":
			name += " other than " + Code(f.Default)
		case f.Warning != "":
			more += fmt.Sprintf(" Of `%s`, they say: `%s`.", f.Name, f.Warning)
		}
		fields.add(Code(f.Block), name)
	}
	return Section{
		Title: "Job specification: accepted without effect",
		Text: "`job run`, `plan` and `validate` and the HTTP API warn of each of these fields: `is accepted but has no effect yet`. " +
			"The field is kept and shown. A block stands for all that is in it, and one that may stand in several places, as `update`, is listed once." + more,
		Head: []string{"Block", "Fields and blocks in it"}, Rows: fields.rows(),
	}
}

// configuration lists the settings of agents that have no effect.
func configuration() []Section {
	var inert, moot grouped
	for _, s := range config.SettingsWithoutEffect() {
		block, name := "top level", s.Name
		if outer, inner, _ := strings.Cut(s.Block, "."); outer != "" {
			block = Code(outer)
			name = strings.TrimPrefix(inner+"."+name, ".")
		}
		if s.Moot {
			moot.add(block, Code(name))
		} else {
			inert.add(block, Code(name))
		}
	}
	inert.add(Code("plugin"), Code(config.PluginsWithoutEffect()...))
	return []Section{
		{
			Title: "Agent configuration: accepted without effect",
			Text: "The agent starts and warns: `accepted, but has no effect yet`. A dot stands between an inner block and its setting. " +
				"`plugin` lists Nomad's own plugins; those of others are accepted with a warning too.",
			Head: []string{"Block", "Settings"}, Rows: inert.rows(),
		},
		{
			Title: "Agent configuration: nothing to set",
			Text:  "What these flags request is always so. They are accepted without a warning.",
			Head:  []string{"Block", "Settings"}, Rows: moot.rows(),
		},
	}
}
