// Command resourceprobe adds a resource to a copy of the tree, as CONTRIBUTING.md says one is added: new files, and rows in the
// registries that the page lists. It fails if a registration would change a file that the page does not list, if the page lists one
// that needs no change, if the tree does not build, a guard fails, or the resource does not work on an agent that was killed meanwhile.
package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed files registrations.txt
var probe embed.FS

func main() {
	root := flag.String("root", "..", "the `directory` of the project")
	flag.Parse()
	if err := run(*root); err != nil {
		fmt.Fprintln(os.Stderr, "resourceprobe:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	dir, err := os.MkdirTemp("", "resourceprobe")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	tree := filepath.Join(dir, "tree")
	if err := copyTree(root, tree); err != nil {
		return err
	}
	changed, err := add(tree)
	if err != nil {
		return err
	}
	if err := compare(tree, changed); err != nil {
		return err
	}
	fmt.Printf("a resource of %d new files has its rows in %d registries\n", len(newFiles), len(changed))
	bin := filepath.Join(dir, "nomadish")
	for _, args := range [][]string{
		{"go", "build", "-o", bin, "."},
		{"go", "test", "./internal/wire", "-run", "Method|Roles"},
		{"go", "test", "./nomadish/fsm", "./nomadish/state", "-run", "Entries|EveryEntry|Rebuil|Export|Snapshot"},
		{"go", "test", "./command/agent/http", "-run", "GetChangesNothing|Route|Roles"},
		{"go", "test", "./command", "-run", "Registry|Help|Groups|Hostile"},
		{"go", "test", "./e2e/walls", "-run", "^(TestWalls|TestWords|TestWireFields)$"},
	} {
		if err := command(tree, args...); err != nil {
			return err
		}
		fmt.Println("ok   ", strings.Join(args, " "))
	}
	return try(bin, dir)
}

// newFiles are the files of the resource, by path.
var newFiles []string

// copyTree copies the files that git knows or would add.
func copyTree(root, to string) error {
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	return command(root, "bash", "-c", `set -o pipefail; git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$0" 2>/dev/null || true`, to)
}

// add adds the files and the rows, and returns the files that got rows.
func add(tree string) (changed []string, err error) {
	err = fs.WalkDir(probe, "files", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(path, "files/"), ".txt")
		newFiles = append(newFiles, name)
		text, err := probe.ReadFile(path)
		if err != nil {
			return err
		}
		name = filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		return os.WriteFile(name, text, 0o644)
	})
	if err != nil {
		return nil, err
	}
	list, err := probe.ReadFile("registrations.txt")
	if err != nil {
		return nil, err
	}
	for _, part := range strings.Split("\n"+string(list), "\n== ")[1:] {
		name, rows, _ := strings.Cut(part, "\n")
		if err := register(filepath.Join(tree, name), rows); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		changed = append(changed, name)
	}
	return changed, nil
}

var instruction = regexp.MustCompile(`(?m)^(after|replace|append|more)\t(.*)\n`)

// register adds rows to one file: after the line that begins with the anchor, in place of it, or at its end.
func register(file, rows string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	lines := strings.SplitAfter(string(raw), "\n")
	at := instruction.FindAllStringSubmatchIndex(rows, -1)
	for i, m := range at {
		end := len(rows)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		how, anchor, text := rows[m[2]:m[3]], rows[m[4]:m[5]], strings.TrimSuffix(rows[m[1]:end], "\n")+"\n"
		line := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(strings.TrimSpace(l), strings.TrimSpace(anchor)) })
		if line < 0 {
			return fmt.Errorf("no line begins with %q: the registry has changed, so change registrations.txt as well", anchor)
		}
		switch how {
		case "after":
			lines = slices.Insert(lines, line+1, text)
		case "replace":
			lines[line] = text
		case "more": // the number in the line grows
			if lines[line], err = grown(lines[line], strings.TrimSpace(text)); err != nil {
				return err
			}
		case "append":
			lines[line] = strings.TrimSuffix(lines[line], "\n") + text
		}
	}
	return os.WriteFile(file, []byte(strings.Join(lines, "")), 0o644)
}

// grown returns a line in which the last number is larger by what is stated.
func grown(line, by string) (string, error) {
	at := number.FindAllStringIndex(line, -1)
	more, err := strconv.Atoi(by)
	if len(at) == 0 || err != nil {
		return "", fmt.Errorf("no number in %q, or %q is none", line, by)
	}
	last := at[len(at)-1]
	n, err := strconv.Atoi(line[last[0]:last[1]])
	return line[:last[0]] + strconv.Itoa(n+more) + line[last[1]:], err
}

var number = regexp.MustCompile(`[0-9]+`)

var row = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// compare checks that CONTRIBUTING.md lists the registries that were changed, and no others.
func compare(tree string, changed []string) error {
	raw, err := os.ReadFile(filepath.Join(tree, "CONTRIBUTING.md"))
	if err != nil {
		return err
	}
	_, page, ok := strings.Cut(string(raw), "\n### Registries of a resource\n")
	if !ok {
		return errors.New(`CONTRIBUTING.md has no part "Registries of a resource"`)
	}
	page, _, _ = strings.Cut(page, "\n#")
	var listed []string
	for _, m := range row.FindAllStringSubmatch(page, -1) {
		listed = append(listed, m[1])
	}
	var wrong []error
	for _, name := range changed {
		if !slices.Contains(listed, name) {
			wrong = append(wrong, fmt.Errorf("%s must be changed for a new resource, but CONTRIBUTING.md does not list it", name))
		}
	}
	for _, name := range listed {
		if !slices.Contains(changed, name) {
			wrong = append(wrong, fmt.Errorf("CONTRIBUTING.md lists %s, but a new resource does not change it", name))
		}
	}
	return errors.Join(wrong...)
}

func command(dir string, args ...string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// try creates, reads, lists, changes and deletes the resource on an agent, which is killed and started again in between.
func try(bin, dir string) error {
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	config := filepath.Join(dir, "agent.hcl")
	text := fmt.Sprintf("bind_addr = \"127.0.0.1\"\ndata_dir = %q\nports {\n  http = %s\n  rpc = %s\n  serf = %s\n}\nserver {\n  enabled = true\n  bootstrap_expect = 1\n}\n",
		filepath.Join(dir, "data"), ports[0], ports[1], ports[2])
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	address := "http://127.0.0.1:" + ports[0]
	agent, err := start(bin, config, address)
	if err != nil {
		return err
	}
	defer func() { _ = agent.Process.Kill(); _ = agent.Wait() }()
	apply := func(name, size string) error {
		out, err := exec.Command(bin, "widget", "apply", "-address="+address, "-size="+size, name).CombinedOutput()
		if err != nil {
			return fmt.Errorf("widget apply: %w: %s", err, out)
		}
		return nil
	}
	if err := errors.Join(apply("a", "3"), apply("b", "4"), apply("a", "5")); err != nil {
		return err
	}
	_ = agent.Process.Kill()
	_ = agent.Wait()
	if agent, err = start(bin, config, address); err != nil {
		return err
	}
	show := func(want string, args ...string) error {
		out, err := exec.Command(bin, args...).CombinedOutput()
		if !strings.Contains(strings.Join(strings.Fields(string(out)), " "), want) {
			return fmt.Errorf("nomadish %s: printed %q, without %q (%v)", strings.Join(args, " "), out, want, err)
		}
		return nil
	}
	if err := errors.Join(
		show("a 5 b 4", "widget", "list", "-address="+address),
		show("Size = 5", "widget", "status", "-address="+address, "a"),
		show("deleted", "widget", "delete", "-address="+address, "a"),
		show("b 4", "widget", "list", "-address="+address),
		show("404", "widget", "status", "-address="+address, "a"),
		show(`"Size":4`, "operator", "api", "-address="+address, "/v1/widget/b"),
	); err != nil {
		return err
	}
	fmt.Println("ok    created, listed, changed, killed and started again, read and deleted on an agent")
	return nil
}

// start starts an agent and waits until it leads.
func start(bin, config, address string) (*exec.Cmd, error) {
	var log bytes.Buffer
	agent := exec.Command(bin, "agent", "-config="+config)
	agent.Stdout, agent.Stderr = &log, &log
	if err := agent.Start(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		if exec.Command(bin, "widget", "list", "-address="+address).Run() == nil {
			return agent, nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	_ = agent.Process.Kill()
	_ = agent.Wait()
	return nil, fmt.Errorf("the agent does not lead after a minute:\n%s", log.String())
}

// freePorts returns ports of the loopback interface that nobody uses at present.
func freePorts(n int) (ports []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		ports = append(ports, port)
	}
	return ports, nil
}
