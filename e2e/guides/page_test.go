package guides

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the checkout.
const root = "../../"

// block is a fenced block of a page: ```LANGUAGE FILE. The file is what the page calls it, in the directory of its commands.
type block struct{ language, file, text string }

var (
	fencedBlock = regexp.MustCompile("(?ms)^ *```([a-z]*)(?: (\\S+))?\n(.*?)^ *```$")
	commandLine = regexp.MustCompile(`(?m)^ *\$ `)
)

// blocksOf returns the blocks of a page of docs/guides, or of one named from there.
func blocksOf(t *testing.T, page string) []block {
	t.Helper()
	text, err := os.ReadFile(root + "docs/guides/" + page)
	if err != nil {
		t.Fatal(err)
	}
	var all []block
	for _, m := range fencedBlock.FindAllStringSubmatch(string(text), -1) {
		all = append(all, block{language: m[1], file: m[2], text: m[3]})
	}
	return all
}

// command is a command of a page, and the lines that it prints there. A script is several commands that print nothing there.
type command struct {
	line, output string
	script       bool
}

// commands returns the commands of a block marked console, each after "$ ", or the script that a block marked sh is. What the test does
// itself, as it starts agents, is a command of its own there.
func (b block) commands() []command {
	var all []command
	switch b.language {
	case "console":
		for _, text := range commandLine.Split(b.text, -1)[1:] {
			line, output, _ := strings.Cut(text, "\n")
			for strings.Count(line, "'")%2 == 1 { // a quoted text of several lines
				next, rest, found := strings.Cut(output, "\n")
				if !found {
					break
				}
				line, output = line+"\n"+next, rest
			}
			all = append(all, command{line: line, output: output})
		}
	case "sh":
		script := ""
		for line := range strings.Lines(strings.ReplaceAll(b.text, "\\\n", "")) {
			if !startsAgent.MatchString(line) {
				script += line
				continue
			}
			all = append(all, command{line: script, script: true}, command{line: withoutComment(line)})
			script = ""
		}
		all = append(all, command{line: script, script: true})
	}
	return slices.DeleteFunc(all, func(c command) bool { return strings.TrimSpace(c.line) == "" })
}

var lineComment = regexp.MustCompile(`\s+#.*`)

func withoutComment(line string) string {
	return strings.TrimSpace(lineComment.ReplaceAllString(line, ""))
}

var (
	movingText = strings.Join([]string{
		`…`,
		`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`,
		`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z?`,
		`\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?`,
		`\b\d\d:\d\d:\d\d\b`,
		`\b[0-9a-f]{8}\b`,
		`\b\d+(?:\.\d+){2,}\b`,
		`\b(?:\d+h)?(?:\d+m)?\d+(?:\.\d+)?(?:ms|µs|s)\b`,
		`\b\d+\.\d+\b`,
		`\bindex \d+\b`,
		`\b[a-z]+-\d\b`,
	}, "|")
	moving    = regexp.MustCompile(movingText)
	nodeName  = regexp.MustCompile(`^[a-z]+-\d$`)
	shownID   = regexp.MustCompile(`^[0-9a-f]{8}$`)
	timeOfDay = `(?:\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?|\d\d:\d\d:\d\d)`
)

// pattern returns an expression for a line as a page shows it, whatever the spaces. "…" stands for anything, or nothing. Times, durations in seconds,
// fractions and indexes stand for any of their kind. Eight hexadecimal digits stand for the ID that is printed there: ids has those that
// are known, and fresh are the others, one for each group of the expression. What chance finds counts as an ID.
func pattern(line string, ids map[string]string, chance *regexp.Regexp) (expression *regexp.Regexp, fresh []string) {
	line = strings.Join(strings.Fields(line), " ")
	text, at := "", 0
	for _, m := range moving.FindAllStringIndex(line, -1) {
		text += regexp.QuoteMeta(line[at:m[0]])
		at = m[1]
		switch word := line[m[0]:m[1]]; {
		case word == "…":
			text = strings.TrimSuffix(text, " ") + ".*"
		case shownID.MatchString(word) && ids[word] != "":
			text += ids[word]
		case shownID.MatchString(word):
			fresh = append(fresh, word)
			text += "([0-9a-f]{8})"
		case chance != nil && chance.MatchString(word) && ids[word] != "":
			text += ids[word] + `\b`
		case chance != nil && chance.MatchString(word):
			fresh = append(fresh, word)
			text += `(\b[a-z]+-\d)\b`
		case nodeName.MatchString(word):
			text += regexp.QuoteMeta(word)
		case strings.HasPrefix(word, "index "):
			text += `index \d+`
		case strings.Count(word, "-") == 4:
			text += `[0-9a-f-]{36}`
		case strings.Contains(word, "T"):
			text += `\d{4}-\d\d-\d\dT[\d:.Z]+`
		case strings.Contains(word, ":"):
			text += timeOfDay
		case strings.HasSuffix(word, "s"):
			text += `[\dhmµ.]+s`
		case strings.Count(word, ".") == 1:
			text += `\d+(?:\.\d+)?`
		default: // an address or a version
			text += regexp.QuoteMeta(word)
		}
	}
	return regexp.MustCompile(text + regexp.QuoteMeta(line[at:])), fresh
}

// put replaces what a text of a page names by what that is here, the longest names first. A name that is a word is replaced as a word only.
func put(names map[string]string, text string) string {
	keys := make([]string, 0, len(names))
	for key := range names {
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return text
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	for i, key := range keys {
		keys[i] = regexp.QuoteMeta(key)
		if wordAtEdge.MatchString(key[:1]) {
			keys[i] = `\b` + keys[i]
		}
		if wordAtEdge.MatchString(key[len(key)-1:]) {
			keys[i] += `\b`
		}
	}
	return regexp.MustCompile(strings.Join(keys, "|")).ReplaceAllStringFunc(text, func(found string) string { return names[found] })
}

var wordAtEdge = regexp.MustCompile(`\w`)

// byTime finds the numbers of answers that depend on the time.
var byTime = regexp.MustCompile(`\.(Index|Total|Aged)$`)

// answerLacks states where an answer lacks what a page shows of it: every name that the page shows, with a value of the same kind, lists as
// long at least, texts as pattern has them. Empty: it has all.
func answerLacks(path string, shown, have any) string {
	switch shown := shown.(type) {
	case map[string]any:
		fields, ok := have.(map[string]any)
		if !ok {
			return path + " is no object"
		}
		for _, name := range slices.Sorted(maps.Keys(shown)) {
			value, ok := fields[name]
			if !ok {
				return path + "." + name + " is not there"
			}
			if lacks := answerLacks(path+"."+name, shown[name], value); lacks != "" {
				return lacks
			}
		}
	case []any:
		list, ok := have.([]any)
		if !ok || len(list) < len(shown) {
			return fmt.Sprintf("%s has less than %d elements", path, len(shown))
		}
		for i, value := range shown {
			if lacks := answerLacks(fmt.Sprintf("%s[%d]", path, i), value, list[i]); lacks != "" {
				return lacks
			}
		}
	case string:
		text, ok := have.(string)
		if finds, _ := pattern(shown, nil, nil); !ok || !finds.MatchString(text) {
			return fmt.Sprintf("%s is %v", path, have)
		}
	case float64:
		if number, ok := have.(float64); !ok || number != shown && shown < 1e6 && !byTime.MatchString(path) {
			return fmt.Sprintf("%s is %v", path, have)
		}
	default:
		if have != shown {
			return fmt.Sprintf("%s is %v", path, have)
		}
	}
	return ""
}
