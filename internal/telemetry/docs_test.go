package telemetry

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var write = flag.Bool("write", false, "write the table of docs/reference/metrics.md instead of checking it")

const (
	docs       = "../../docs/reference/metrics.md"
	tableBegin = "<!-- the table: `make docs` writes it -->\n"
	tableEnd   = "<!-- end of the table -->\n"
)

// TestDocs: docs/reference/metrics.md has the table of families as it is in the code.
func TestDocs(t *testing.T) {
	raw, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), tableBegin)
	have, after, ended := strings.Cut(rest, tableEnd)
	if !ok || !ended {
		t.Fatalf("%s has no place for the table", docs)
	}
	var b strings.Builder
	b.WriteString("\n")
	for _, section := range sections {
		fmt.Fprintf(&b, "### %s\n\n| name | type | unit | labels | meaning |\n| --- | --- | --- | --- | --- |\n", section.title)
		for _, f := range section.families {
			fmt.Fprintf(&b, "| `%s%s` | %s | %s | %s | %s |\n", Prefix, f.Name, f.Kind, f.Unit, strings.ReplaceAll(f.Labels, ",", ", "), f.Help)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "## Metrics of Nomad that are missing\n\n%s\n\n| of | metrics |\n| --- | --- |\n%s%s\n", missingText, missingByHand, missingTable(t))
	if *write {
		if err := os.WriteFile(docs, []byte(before+tableBegin+b.String()+tableEnd+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have != b.String() {
		t.Errorf("%s is not as the code is: make docs", docs)
	}
}

const (
	missingText = "A dashboard or an alert that uses one of these shows nothing. A star stands for all that begin so."

	// missingByHand are those that the list of Nomad's names cannot have: they are made of variables, or libraries of Nomad's make them.
	missingByHand = "| Memory of tasks beyond `usage`, `rss`, `swap` and what they have | `nomad.client.allocs.memory.cache`, " +
		"`nomad.client.allocs.memory.kernel_usage`, `nomad.client.allocs.memory.kernel_max_usage`, `nomad.client.allocs.memory.max_usage`, " +
		"`nomad.client.allocs.memory.mapped_file` |\n" +
		"| The file of the Raft log | `nomad.raft.boltdb.*` |\n" +
		"| The agent's process; `nomad.runtime.*` has its memory | `process_*` |\n"
)

var sections = []struct {
	title    string
	families []Family
}{
	{"Jobs and the leader", leaderFamilies}, {"Servers", workFamilies}, {"Clients", clientFamilies}, {"RPC methods", rpcFamilies},
	{"Log entries", fsmFamilies}, {"Every agent", agentFamilies}, {"Raft, Serf and memberlist", libraryFamilies}, {"Not in Nomad", ownFamilies},
}

// TestSections: all families are in the documentation, once.
func TestSections(t *testing.T) {
	n := 0
	for _, s := range sections {
		n += len(s.families)
	}
	if n != len(Families) {
		t.Errorf("%d families are documented, of %d", n, len(Families))
	}
	for _, f := range Families {
		if f.Help == "" || strings.HasSuffix(f.Help, ".") || f.Unit == "" || strings.Contains(f.Help, "|") {
			t.Errorf("%s: unit %q, help %q", f.Name, f.Unit, f.Help)
		}
	}
}
