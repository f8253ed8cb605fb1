package telemetry

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// nomadNames marks which of Nomad's metrics are there; a test of e2e holds it to what an agent shows.
const nomadNames = "../../e2e/cluster/testdata/metrics/nomad.txt"

// missingFeatures are what metrics of Nomad that are missing belong to: the first row whose expression finds something in a
// name counts. The last row is of what is there, but not measured so.
var missingFeatures = []struct {
	name string
	of   *regexp.Regexp
}{
	{"Access control", regexp.MustCompile(`\.acl\.|acl_|one_time_token`)},
	{"Volumes and their plugins", regexp.MustCompile(`csi|volume|plugin|host_node`)},
	{"Deployments", regexp.MustCompile(`deployment`)},
	{"Namespaces", regexp.MustCompile(`namespace`)},
	{"Services, their checks, Consul and Vault", regexp.MustCompile(`consul|vault|service|checks`)},
	{"Variables, identities and their keys", regexp.MustCompile(`variables|sv_operation|keyring|root_key|identit|introduction`)},
	{"Periodic and parameterized jobs, actions, tags, commands in tasks, pauses", regexp.MustCompile(`periodic|dispatch|action|tag|exec|pause`)},
	{"Features that are there: not measured, or under another name", regexp.MustCompile(``)},
}

// variable finds the lines of nomadNames that have the names of variables of Nomad's in them.
var variable = regexp.MustCompile(`\.h\.|\.cross-region\.|\.endpoint\.`)

// missingTable lists the metrics of Nomad that are not there. A star stands for all that begin so: none of them is there.
func missingTable(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(nomadNames)
	if err != nil {
		t.Fatal(err)
	}
	var there, missing []string
	for line := range strings.Lines(string(raw)) {
		switch mark, name, _ := strings.Cut(strings.TrimSpace(line), " "); mark {
		case "+", "~":
			there = append(there, name)
		case "-":
			if !variable.MatchString(name) {
				missing = append(missing, name)
			}
		}
	}
	if len(there) < 100 || len(missing) < 50 {
		t.Fatalf("%s: %d are there, %d are missing", nomadNames, len(there), len(missing))
	}
	rows := make([][]string, len(missingFeatures))
	for _, name := range missing {
		at := slices.IndexFunc(missingFeatures, func(f struct {
			name string
			of   *regexp.Regexp
		}) bool {
			return f.of.MatchString(name)
		})
		if short := "`" + Prefix + shortest(name, there) + "`"; !slices.Contains(rows[at], short) {
			rows[at] = append(rows[at], short)
		}
	}
	var b strings.Builder
	for i, f := range missingFeatures {
		if len(rows[i]) > 0 {
			fmt.Fprintf(&b, "| %s | %s |\n", f.name, strings.Join(rows[i], ", "))
		}
	}
	return b.String()
}

// shortest is the shortest beginning of a name, to a dot or within `fsm` to an underscore, that none of those begins with that
// are there, with a star; or the name.
func shortest(name string, there []string) string {
	ends := regexp.MustCompile(`\.|_`).FindAllStringIndex(name, -1)
	for _, end := range ends {
		begin := name[:end[1]]
		if strings.Count(begin, ".") < 2 || strings.HasSuffix(begin, "_") && (!strings.HasPrefix(begin, "nomad.fsm.") || strings.HasSuffix(begin, ".apply_")) {
			continue
		}
		if !slices.ContainsFunc(there, func(other string) bool { return strings.HasPrefix(other, begin) }) {
			return begin + "*"
		}
	}
	return name
}
