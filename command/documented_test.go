package command

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/client/sim"
	"github.com/nomadish/nomadish/command/agent"
	"github.com/nomadish/nomadish/command/agent/config"
	"github.com/nomadish/nomadish/command/jobspec"
	"github.com/nomadish/nomadish/command/jobspec/hclfile"
)

var (
	documentedBlock = regexp.MustCompile("(?ms)^ *```[^`\n]*\n(.*?)^ *```$")
	// documentedLine finds commands that a terminal or a script shows, which may go on in the next line.
	documentedLine = regexp.MustCompile(`(?m)^ *(?:\$ )?nomadish ((?:[^\n]*\\\n)*[^\n]*)$`)
	// documentedSpan finds those within a text, of which less may be written.
	documentedSpan = regexp.MustCompile("`nomadish ([^`\n]+)`")
	commandEnd     = regexp.MustCompile(`\s+[#|;>&]|;.*|\s+\|.*`)
	commandWord    = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`)
)

// TestDocumentedCommands: the commands that pages show are there, with their flags, and with as many arguments as they take.
func TestDocumentedCommands(t *testing.T) {
	pages, err := filepath.Glob("../docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range append(pages, "../README.md", "../docs/index.md", "../CONTRIBUTING.md") {
		if strings.HasSuffix(page, "/reference/commands.md") || strings.Contains(page, "/adr/") {
			continue // it is made of the commands; and they are of their time
		}
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		for _, m := range documentedLine.FindAllStringSubmatch(text, -1) {
			found++
			if why := misdocumented(m[1], true); why != "" {
				t.Errorf("%s: nomadish %s: %s", page, m[1], why)
			}
		}
		for _, m := range documentedSpan.FindAllStringSubmatch(documentedBlock.ReplaceAllString(text, ""), -1) {
			found++
			if why := misdocumented(m[1], false); why != "" {
				t.Errorf("%s: nomadish %s: %s", page, m[1], why)
			}
		}
	}
	if found < 200 {
		t.Errorf("%d commands: this test does not find them", found)
	}
}

// misdocumented states what is wrong with a command line of a page, in which words in capitals and the like stand for arguments; empty: nothing.
// whole: all of its arguments are there.
func misdocumented(line string, whole bool) string {
	if at := commandEnd.FindStringIndex(line); at != nil {
		line = line[:at[0]]
	}
	words := commandWord.FindAllString(strings.ReplaceAll(line, "\\\n", " "), -1)
	name, n := "", 0
	all := specs()
	for i, path := 0, ""; i < len(words); i++ {
		path = beneath(path, words[i])
		if _, ok := all[path]; ok {
			name, n = path, i+1
		}
	}
	path := strings.Join(words, " ")
	switch {
	case name == "" && (groups[path] != "" || laterReason(path) != "" || strings.HasPrefix(words[0], "-") || words[0] == strings.ToUpper(words[0])):
		return ""
	case name == "":
		return "there is no such command"
	}
	s := all[name]
	if s.raw != nil {
		for _, word := range words[n:] {
			if flagName, ok := flagOf(word); ok && !strings.Contains(agent.Usage, "  -"+flagName) {
				return "there is no flag -" + flagName
			}
		}
		return ""
	}
	fs, _ := (&runner{name: name, spec: s}).flags(&env{})
	var args []string
	for i := n; i < len(words); i++ {
		flagName, ok := flagOf(words[i])
		if !ok {
			args = append(args, words[i])
			continue
		}
		f := fs.Lookup(flagName)
		if f == nil {
			return "there is no flag -" + flagName
		}
		if b, ok := f.Value.(interface{ IsBoolFlag() bool }); (!ok || !b.IsBoolFlag()) && !strings.Contains(words[i], "=") {
			i++
		}
	}
	if !whole {
		return ""
	}
	return s.miscounts(args)
}

var (
	documentedFile = regexp.MustCompile("(?ms)^ *```hcl(?: \\S+)?\n(.*?)^ *```$")
	documentedWord = regexp.MustCompile(`(?m)^ *[a-z_]+`)
)

// fragments are what stands around blocks that pages show alone.
var fragments = map[string]string{
	"disconnect": "job \"doc\" {\ngroup \"g\" {\n%s\ntask \"t\" {\ndriver = \"mock_driver\"\n}\n}\n}",
	"constraint": "job \"doc\" {\ngroup \"g\" {\n%s\ntask \"t\" {\ndriver = \"mock_driver\"\n}\n}\n}",
	"task":       "job \"doc\" {\ngroup \"g\" {\n%s\n}\n}",
	"device":     "job \"doc\" {\ngroup \"g\" {\ntask \"t\" {\ndriver = \"mock_driver\"\nresources {\n%s\n}\n}\n}\n}",
	"window":     "virtual_cluster \"doc\" {\n%s\n}",
}

// TestDocumentedFiles: the files in HCL that pages show, and parts of such, are read without an error.
func TestDocumentedFiles(t *testing.T) {
	pages, err := filepath.Glob("../docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range documentedFile.FindAllStringSubmatch(string(text), -1) {
			found++
			if err := readDocumented(m[1]); err != nil {
				t.Errorf("%s: %v in\n%s", page, err, m[1])
			}
		}
	}
	if found < 30 {
		t.Errorf("%d files: this test does not find them", found)
	}
}

// readDocumented reads a file that a page shows; its first word that begins a line says what it is.
func readDocumented(text string) error {
	first := strings.TrimSpace(documentedWord.FindString(text))
	if around, ok := fragments[first]; ok {
		text = fmt.Sprintf(around, text)
		first = documentedWord.FindString(text)
	}
	options := jobspec.Options{Options: hclfile.Options{AllowFS: true, BaseDir: "../examples/slurm"}}
	var err error
	switch first {
	case "job":
		_, _, err = jobspec.Parse("doc.hcl", []byte(text), options)
	case "workflow":
		_, err = jobspec.ParseWorkflow("doc.hcl", []byte(text), options, func(string) ([]byte, error) {
			return []byte("job \"j\" {\ntype = \"batch\"\ngroup \"g\" {\ntask \"t\" {\ndriver = \"mock_driver\"\n}\n}\n}"), nil
		})
	case "shape":
		_, err = sim.Parse([]byte(text), "doc.hcl")
	case "virtual_cluster":
		_, err = readVirtualClusters(strings.NewReader(text), "-", false)
	case "project", "flow":
		_, err = readProjects(strings.NewReader(text), "-", projectHCL)
	case "license":
		_, err = readLicenses(strings.NewReader(text), "-", false)
	case "node_pool":
		_, err = readNodePool(&env{in: strings.NewReader(text)}, "-", false)
	case "name":
		if strings.Contains(text, "data_dir") {
			_, err = config.Default().Merge("doc.hcl", []byte(text))
		} else {
			_, err = readNamespace(strings.NewReader(text), "-", false)
		}
	default:
		_, err = config.Default().Merge("doc.hcl", []byte(text))
	}
	return err
}

// flagOf returns the name of the flag that a word of a command line is.
func flagOf(word string) (name string, ok bool) {
	name, ok = strings.CutPrefix(word, "-")
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "-"), "=")
	return name, ok && name != "" && (name[0] < '0' || name[0] > '9')
}
