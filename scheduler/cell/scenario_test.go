package cell

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what the scenarios print into their files")

// TestScenarios runs testdata/*.txt. Each command is followed by what it prints, in
// lines that begin with "  ". Commands:
//
//	tree node(2*socket(4*gpu)) [links 0-1:4 ...]
//	find COUNT [share=N] [level=L] [required] [gather] [preferred=N,N] [only=D,D] [take=NAME]
//	give NAME          what was found and taken by that name
//	hold DEVICE SHARE  (or drop): somebody has it without asking
//	sick DEVICE        (or well)
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			r := &runner{taken: map[string]Request{}, choice: map[string]Choice{}}
			for line := range strings.Lines(string(data)) {
				if strings.HasPrefix(line, "  ") {
					continue
				}
				got.WriteString(line)
				if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
					fmt.Fprintf(&got, "  %s\n", r.run(t, words))
				}
			}
			if *rewrite {
				if err := os.WriteFile(file, []byte(got.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			} else if got.String() != string(data) {
				t.Errorf("it printed\n%s", got.String())
			}
		})
	}
}

type runner struct {
	st     *State
	taken  map[string]Request
	choice map[string]Choice
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func numbers(t *testing.T, text string) (list []int) {
	t.Helper()
	for part := range strings.SplitSeq(text, ",") {
		list = append(list, number(t, part))
	}
	return list
}

func (r *runner) run(t *testing.T, words []string) string {
	t.Helper()
	reported := ""
	switch words[0] {
	case "tree":
		r.tree(t, words[1:])
	case "find":
		reported = r.find(t, words[1:]) + "; "
	case "give":
		for _, d := range r.choice[words[1]].Devices {
			r.st.Give(d, r.taken[words[1]].Share)
		}
	case "hold":
		r.st.Take(number(t, words[1]), number(t, words[2]))
	case "drop":
		r.st.Give(number(t, words[1]), number(t, words[2]))
	case "sick", "well":
		r.st.SetHealthy(number(t, words[1]), words[0] == "well")
	default:
		t.Fatalf("unknown command %q", words)
	}
	if err := r.st.Check(); err != nil {
		t.Fatalf("%q: %v", words, err)
	}
	return fmt.Sprintf("%scells %v", reported, freeCells(r.st))
}

func (r *runner) tree(t *testing.T, words []string) {
	t.Helper()
	var links []Link
	for _, text := range words[1:] {
		var l Link
		if _, err := fmt.Sscanf(text, "%d-%d:%d", &l.A, &l.B, &l.Lanes); err != nil && text != "links" {
			t.Fatal(err)
		} else if err == nil {
			links = append(links, l)
		}
	}
	parsed, rest := parseTree(t, words[0])
	if rest != "" || len(parsed) != 1 {
		t.Fatalf("tree %q: cannot read it from %q on", words[0], rest)
	}
	r.st = state(t, parsed[0], links...)
}

// parseTree reads what Key writes: a list of [N*]level[(list)].
func parseTree(t *testing.T, text string) (list []Vertex, rest string) {
	t.Helper()
	for {
		n := 1
		if count, after, found := strings.Cut(text, "*"); found && strings.Trim(count, "0123456789") == "" {
			n, text = number(t, count), after
		}
		end := strings.IndexAny(text+")", "(),")
		v := Vertex{Level: text[:end]}
		text = text[end:]
		if strings.HasPrefix(text, "(") {
			v.Children, text = parseTree(t, text[1:])
			text = strings.TrimPrefix(text, ")")
		}
		list = append(list, slices.Repeat([]Vertex{v}, n)...)
		if !strings.HasPrefix(text, ",") {
			return list, text
		}
		text = text[1:]
	}
}

func (r *runner) find(t *testing.T, words []string) string {
	t.Helper()
	a, name := Request{Count: number(t, words[0])}, ""
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "share":
			a.Share = number(t, value)
		case "level":
			a.Level = value
		case "required":
			a.Required = true
		case "gather":
			a.Gather = true
		case "preferred":
			a.Preferred = numbers(t, value)
		case "only":
			only := numbers(t, value)
			a.Allowed = func(d int) bool { return slices.Contains(only, d) }
		case "take":
			name = value
		default:
			t.Fatalf("unknown word %q", word)
		}
	}
	c, found := r.st.Find(a)
	if !found {
		return "none"
	}
	if name != "" {
		r.taken[name], r.choice[name] = a, c
		for _, d := range c.Devices {
			r.st.Take(d, a.Share)
		}
	}
	return fmt.Sprintf("%v at %s, of a cell of %d", c.Devices, c.Level, c.Cell)
}
