package guides

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
)

// terminal is where the commands of pages run, one page after the other: a shell in a directory of its own.
type terminal struct {
	t     *testing.T
	agent *harness.Agent // whom the commands call; nil: none yet
	dir   string
	cwd   string            // where the next command runs
	env   []string          // of the next command
	names map[string]string // what stands on pages, by what it is here
	ids   map[string]string // the IDs on pages, by what they are here
	// chance finds the names of nodes that depend on chance where they stand on pages, and count as IDs do.
	chance *regexp.Regexp
	// service has what a page does beside commands of nomadish: the agents of a service manager. It is called with the command.
	service func(line string)
	// file is called with each file that a page shows with its name.
	file func(name, text string)
	// before has what must be there before a script of a page, by how that begins: a script.
	before map[string]string
	// after has what is done when a command of a page has printed what the page shows, by the command.
	after map[string]func()
	runs  string // the command of the agent that a page started last
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	dir := t.TempDir()
	examples, err := filepath.Abs(root + "examples")
	if err == nil {
		err = errors.Join(os.Symlink(examples, filepath.Join(dir, "examples")), os.Mkdir(filepath.Join(dir, ".bin"), 0o700),
			os.Symlink(harness.Bin, filepath.Join(dir, ".bin", "nomadish")))
	}
	if err != nil {
		t.Fatal(err)
	}
	a := &terminal{t: t, dir: dir, cwd: dir, names: map[string]string{}, ids: map[string]string{}}
	a.env = append(os.Environ(), "PATH="+filepath.Join(dir, ".bin")+":"+os.Getenv("PATH"))
	a.file = func(name, text string) { a.write(name, put(a.names, text)) }
	a.service = func(line string) { t.Errorf("%q: there is no service here", line) }
	return a
}

// changesSomething finds the commands that run once, whatever they print.
var changesSomething = regexp.MustCompile(`\bnomadish (job (init|run|scale|stop|start|restart|eval)|node (eligibility|drain|meta apply|pool (apply|delete))|system|tls|sim|` +
	`alloc (suspend|resume|stop)|eval delete|(vc|namespace|license|project|flow|workflow) (apply|delete|shift|points|offer|bid|calendar -|run|pause|resume|cancel|retry)|server join|` +
	`operator (scheduler set-config|snapshot|raft (info|logs|state)|gossip keyring (generate|install|use|remove)))\b|^[^n]`)

// startsAgent finds the commands of pages that start or stop agents, which the test does.
var startsAgent = regexp.MustCompile(`^ *(?:nomadish agent |(?:sudo )?systemctl )`)

// inScripts is nomadish in scripts: plans that would change something succeed, and what shows a log until Ctrl-C does so for a moment.
const inScripts = "nomadish() { if [ \"$1\" = monitor ]; then local code=0; timeout -s INT 0.3 nomadish \"$@\" || code=$?; [ $code = 124 ]; return; fi; command nomadish \"$@\" || { local code=$?; [ \"$1 $2 $code\" = 'job plan 1' ]; }; }\n"

// follow writes the files that a page shows with their names, and runs its commands.
func (a *terminal) follow(page string) {
	a.t.Helper()
	for _, b := range blocksOf(a.t, page) {
		if strings.HasPrefix(b.file, "/") {
			a.answers(page, b)
		} else if b.file != "" {
			a.file(b.file, b.text)
		}
		for _, c := range b.commands() {
			switch {
			case exempt(page, c):
			case strings.HasPrefix(c.line, "nomadish agent -dev"):
				a.start(c.line)
			case startsAgent.MatchString(c.line):
				a.service(c.line)
			case c.script:
				for begins, script := range a.before {
					if strings.HasPrefix(c.line, begins) {
						c.line = script + c.line
						break
					}
				}
				if out, code := a.run("set -e\n" + a.here(c.line)); code != 0 {
					a.t.Errorf("%s: exit code %d of\n%s\n%s", page, code, c.line, out)
				}
			default:
				a.shows(page, c)
				if then := a.after[c.line]; then != nil {
					then()
				}
			}
		}
	}
}

// answers reads the path of the HTTP API that a block is of until the answer has what the block shows.
func (a *terminal) answers(page string, b block) {
	a.t.Helper()
	var shown any
	if err := json.Unmarshal([]byte(b.text), &shown); err != nil {
		a.t.Fatalf("%s: %s: %v", page, b.file, err)
	}
	harness.Within(a.t, 20*time.Second, b.file, func(ctx context.Context) error {
		out, code := a.run("nomadish operator api '" + b.file + "'")
		var have any
		err := json.Unmarshal([]byte(out), &have)
		if lacks := answerLacks("", shown, have); err != nil || code != 0 || lacks != "" {
			rest(ctx)
			return fmt.Errorf("%s: %s: %s: exit code %d: %w: %s", page, b.file, lacks, code, err, out)
		}
		return nil
	})
}

func (a *terminal) write(name, text string) {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		a.t.Fatal(err)
	}
}

var nodeCount = regexp.MustCompile(`(?m)^  count *= (\d+)`)

// start starts the development agent that a page starts, in place of the one before.
func (a *terminal) start(line string) {
	a.t.Helper()
	if line == a.runs {
		return
	}
	if a.agent != nil {
		a.stop()
	}
	a.runs = line
	next := harness.NewAgent(a.t, true, "")
	nodes, words := 0, strings.Fields(line)[3:]
	for i, word := range words {
		if i > 0 && words[i-1] == "-simulate" {
			words[i] = filepath.Join(a.dir, word)
			nodes += simulated(a.t, words[i])
		}
	}
	if !slices.Contains(words, "-simulate") || slices.Contains(words, "-simulate-beside") {
		nodes++
	}
	next.Args = append(next.Args, words...)
	next.Start()
	next.WaitReady(nodes)
	a.calls(next)
}

// simulated returns how many nodes a file of shapes has.
func simulated(t *testing.T, path string) (n int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split("\n"+string(text), "\nshape ")[1:] {
		count := 1
		if m := nodeCount.FindStringSubmatch(part); m != nil {
			if _, err := fmt.Sscan(m[1], &count); err != nil {
				t.Fatal(err)
			}
		}
		n += count
	}
	return n
}

// calls has the commands that follow call an agent.
func (a *terminal) calls(agent *harness.Agent) {
	a.agent = agent
	a.env = append(a.env, "NOMADISH_ADDR="+agent.HTTP)
}

// stop ends the agent as a service manager does.
func (a *terminal) stop() {
	a.t.Helper()
	if err := a.agent.Cmd.Process.Signal(os.Interrupt); err != nil {
		a.t.Fatal(err)
	}
	err := a.agent.Wait()
	a.agent.Exited <- err // for cleanup
	if err != nil {
		a.t.Errorf("the agent ended: %v", err)
	}
}

// run runs a script in the shell, and returns what it prints on either output. What it changes of variables and of the directory holds for the
// next, but for a single command of nomadish.
func (a *terminal) run(script string) (out string, code int) {
	a.t.Helper()
	limit := harness.Scaled(20 * time.Second)
	ctx, cancel := context.WithTimeout(a.t.Context(), limit)
	defer cancel()
	state := filepath.Join(a.dir, ".bin", "state")
	changes := !strings.HasPrefix(script, "nomadish ")
	if changes {
		script = "trap 'pwd > " + state + "; env -0 >> " + state + "' EXIT\n" + inScripts + "set -a\n" + script
	}
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Env, cmd.Dir, cmd.WaitDelay = a.env, a.cwd, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	raw, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		a.t.Fatalf("%s: not done within %s\n%s", script, limit, raw)
	}
	if err != nil && cmd.ProcessState == nil {
		a.t.Fatal(err)
	}
	if changes {
		saved, err := os.ReadFile(state)
		cwd, env, found := strings.Cut(string(saved), "\n")
		if err != nil || !found {
			a.t.Fatalf("%s: its state is %q: %v", script, saved, err)
		}
		a.cwd, a.env = cwd, strings.Split(strings.TrimSuffix(env, "\x00"), "\x00")
	}
	return string(raw), cmd.ProcessState.ExitCode()
}

// shows runs a command as a page has it until it prints the lines that the page shows, in their order; one that changes something runs once.
// A command that ends with "; echo $?" may fail; its exit code is the last line.
func (a *terminal) shows(page string, c command) {
	a.t.Helper()
	line := a.here(c.line)
	want := put(a.names, c.output)
	try := func(ctx context.Context) error {
		out, code := a.run(line)
		if code == 1 && strings.HasPrefix(line, "nomadish job plan ") {
			code = 0 // it would change something
		}
		if missing := a.firstMissing(out, want); missing != "" || code != 0 {
			rest(ctx)
			return fmt.Errorf("%s: %s: exit code %d, and %q is not there, or not in this order:\n%s", page, line, code, missing, out)
		}
		return nil
	}
	if changesSomething.MatchString(line) {
		if err := try(a.t.Context()); err != nil {
			a.t.Error(err)
		}
		return
	}
	harness.Within(a.t, 20*time.Second, line, try)
}

// here returns a command of a page with the names and IDs that hold here.
func (a *terminal) here(line string) string {
	return shownIDs.ReplaceAllStringFunc(put(a.names, line), func(id string) string { return cmp.Or(a.ids[id], id) })
}

// rest waits until a command is worth another try: each costs a process, and most of what pages wait for comes within seconds.
func rest(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(150 * time.Millisecond):
	}
}

var shownIDs = regexp.MustCompile(`\b(?:[0-9a-f]{8}|[a-z]+-\d)\b`)

// firstMissing returns the first line of a page's that an output does not have after those before it; "": it has all, and the IDs that the page shows
// are known. Rows that begin with an ID may come in another order.
func (a *terminal) firstMissing(out, want string) string {
	ids := maps.Clone(a.ids)
	printed := strings.Split(out, "\n")
	for line := range strings.SplitSeq(want, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		finds, fresh := pattern(line, ids, a.chance)
		found := slices.IndexFunc(printed, func(have string) bool {
			m := finds.FindStringSubmatch(strings.Join(strings.Fields(have), " "))
			for i, id := range fresh {
				if m != nil {
					ids[id] = m[i+1]
				}
			}
			return m != nil
		})
		if found < 0 {
			return line
		}
		if shownID.MatchString(strings.Fields(line)[0]) { // such rows are in the order of IDs
			printed = slices.Delete(printed, found, found+1)
		} else {
			printed = printed[found+1:]
		}
	}
	a.ids = ids
	return ""
}
