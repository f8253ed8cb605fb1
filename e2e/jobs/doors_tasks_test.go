package jobs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// reach is a script that tries to get at the files of another allocation. It prints a line for each way that was open.
const reach = `d=%s
ls $d >/dev/null && echo listed
ls $d/alloc/data >/dev/null && echo listed data
cat $d/alloc/data/mine && echo read data
echo x > $d/alloc/data/theirs && echo wrote data
echo x > $d/alloc/tmp/theirs && echo wrote tmp
cat $d/alloc/logs/t.stdout.0 && echo read logs
cat $d/t/local/mine && echo read local
cat $d/t/secrets/mine && echo read secrets
exit 0`

// detached is a script that has files in all of its directories.
const detached = `for f in $NOMAD_ALLOC_DIR/data/mine $NOMAD_TASK_DIR/mine $NOMAD_SECRETS_DIR/mine; do echo private > $f; done
ln -s /etc/passwd $NOMAD_TASK_DIR/link; ln -s /etc/passwd $NOMAD_ALLOC_DIR/data/t.stdout.9
echo private; sleep 600`

// TestDoorTasks: what a task can reach of others, and what it inherits of the agent.
func TestDoorTasks(t *testing.T) {
	t.Parallel()
	root := os.Geteuid() == 0
	a := harness.NewAgent(t, false, deniesUsers("bin", "2000000-2000010"))
	harness.OpenDataDir(t, a)
	a.Env = []string{"OF_THE_AGENT=hidden"}
	for range 3 { // the agent's parent leaves descriptors open in it
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close() //nolint:errcheck // only read from
		a.Files = append(a.Files, f)
	}
	a.Start()
	a.WaitReady(1)
	t.Run("others", func(t *testing.T) { doorOthers(t, a, root) })
	t.Run("shared", func(t *testing.T) { doorShared(t, a, root) })
	t.Run("inherited", func(t *testing.T) { doorInherited(t, a, root) })
	t.Run("files", func(t *testing.T) { doorFiles(t, a) })
}

// deniesUsers is the configuration of a server and client that runs no tasks as these users.
func deniesUsers(users ...string) string {
	return fmt.Sprintf("server {\n  enabled = true\n  bootstrap_expect = 1\n}\nclient {\n  enabled = true\n  users {\n    denied = [\"%s\"]\n  }\n}\n",
		strings.Join(users, `", "`))
}

// notRoot is what becomes of a task of another user where the agent is not root.
const notRoot = "only an agent that runs as root can run tasks as other users"

// doorOthers: a task reads and writes nothing of another job's, whoever both run as.
func doorOthers(t *testing.T, a *harness.Agent, root bool) {
	victims := map[string]string{"none": ""}
	if root {
		victims["nobody"] = "nobody"
	}
	for name, user := range victims {
		id := "victim-" + name
		if _, _, err := a.Nomad.Jobs().Register(harness.ShellJob(id, "service", map[string]harness.ShellTask{"t": {User: user, Script: detached}}), nil); err != nil {
			t.Fatal(err)
		}
		alloc := a.WaitRunning(id, 1, 10*time.Second)[0].ID
		dir := filepath.Join(a.Dir, "data", "alloc", alloc)
		harness.Within(t, 10*time.Second, "the victim's output", func(context.Context) error {
			if text, err := os.ReadFile(filepath.Join(dir, "alloc", "logs", "t.stdout.0")); err != nil || string(text) != "private\n" {
				return harness.Errorf("%q, %v", text, err)
			}
			return nil
		})
		for _, attacker := range []string{"nobody", "daemon"} {
			if uidOf(t, attacker) == fmt.Sprint(os.Geteuid()) {
				continue // all tasks of an agent that is not root run as its user, and reach each other
			}
			o := harness.RunShellJob(t, a, name+"-from-"+attacker, map[string]harness.ShellTask{"t": {User: attacker, Script: fmt.Sprintf(reach, dir)}})
			switch {
			case !root && (o.Status != structs.AllocClientFailed || !strings.Contains(o.Events, notRoot)):
				t.Errorf("an agent that is not root ran a task as %s: %s\n%s", attacker, o.Status, o.Events)
			case root && o.Status != structs.AllocClientComplete:
				t.Errorf("%s: %s\n%s", attacker, o.Status, o.Events)
			case root && o.Out["t"] != "":
				t.Errorf("a task as %s reached another job's as %q:\n%s", attacker, user, o.Out["t"])
			}
		}
		doorModes(t, a, dir)
	}
}

// doorModes: neither the allocation nor what the agent keeps for itself is open to all.
func doorModes(t *testing.T, a *harness.Agent, dir string) {
	t.Helper()
	for path, others := range map[string]os.FileMode{
		dir: 0, dir + "/alloc": 0, dir + "/alloc/data": 0, dir + "/alloc/logs": 0, dir + "/alloc/logs/t.stdout.0": 0, dir + "/t/local": 0,
		dir + "/t/secrets": 0, dir + "/t/tmp": 0, a.Dir + "/data/server": 0, a.Dir + "/data/client": 0, a.Dir + "/data/alloc": 0o1, a.Dir + "/data": 0o1,
	} {
		info, err := os.Stat(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := info.Mode().Perm() & 0o7; got != others {
			t.Errorf("%s has mode %v: others have %o, want %o", path, info.Mode(), got, others)
		}
	}
}

// doorShared: the tasks of a group share alloc, though they run as different users.
func doorShared(t *testing.T, a *harness.Agent, root bool) {
	script := func(me string, others ...string) string {
		s := "cd $NOMAD_ALLOC_DIR/data && echo of " + me + " > " + me + " && echo mine > $NOMAD_TASK_DIR/f && echo mine > $NOMAD_SECRETS_DIR/f || exit 1\n"
		for _, o := range others {
			s += "until grep of " + o + "; do sleep 0.05; done 2>/dev/null\n" // which may be there, and empty still
		}
		return s + "until grep -q 'of " + others[0] + "' ../logs/" + me + ".stdout.0; do sleep 0.05; done; ls ../logs >/dev/null && echo own logs"
	}
	users := []string{"", "nobody", "daemon"}
	if !root {
		users = []string{"", "", ""}
	}
	o := harness.RunShellJob(t, a, "shared", map[string]harness.ShellTask{
		"x": {User: users[0], Script: script("x", "y", "z")}, "y": {User: users[1], Script: script("y", "z", "x")}, "z": {User: users[2], Script: script("z", "x", "y")},
	})
	for _, name := range []string{"x", "y", "z"} {
		if out := o.Out[name]; o.Status != structs.AllocClientComplete || strings.Count(out, "of ") != 2 || !strings.HasSuffix(out, "own logs\n") {
			t.Errorf("task %s: %s: %q\n%s", name, o.Status, out, o.Events)
		}
	}
}

// doorInherited: a task has three descriptors, gains no privileges, and sees nothing of the agent's environment.
func doorInherited(t *testing.T, a *harness.Agent, root bool) {
	gain := setuidID(t, a)
	script := "ls /proc/$$/fd; grep NoNewPrivs /proc/self/status; env; " + gain + " -u"
	for _, name := range []string{"", "nobody"} {
		if !root && name != "" {
			continue
		}
		o := harness.RunShellJob(t, a, "inherits-"+name, map[string]harness.ShellTask{"t": {User: name, Script: script}})
		out, uid := o.Out["t"], fmt.Sprint(os.Geteuid())
		if name != "" {
			uid = uidOf(t, name)
		}
		if fds, _, _ := strings.Cut(out, "NoNewPrivs"); fds != "0\n1\n2\n" {
			t.Errorf("as %q: descriptors %q", name, fds)
		}
		if !strings.Contains(out, "NoNewPrivs:\t1\n") || !strings.HasSuffix(out, "\n"+uid+"\n") {
			t.Errorf("as %q: a set-user-ID program gained:\n%s", name, out)
		}
		if strings.Contains(out, "OF_THE_AGENT") {
			t.Errorf("as %q: the agent's environment:\n%s", name, out)
		}
	}
	for id, row := range map[string]struct {
		task harness.ShellTask
		want string
	}{
		"denied":  {harness.ShellTask{User: "bin"}, `user "bin"`},
		"new":     {harness.ShellTask{Config: map[string]any{"no_new_privs": false}}, "allow_new_privs"},
		"unknown": {harness.ShellTask{User: "no-such-user"}, "no-such-user"},
	} {
		row.task.Script = "echo ran"
		o := harness.RunShellJob(t, a, "refused-"+id, map[string]harness.ShellTask{"t": row.task})
		if o.Status != structs.AllocClientFailed || !strings.Contains(o.Events, row.want) || strings.Contains(o.Out["t"], "ran") {
			t.Errorf("%s: %s, want it refused with %q:\n%s", id, o.Status, row.want, o.Events)
		}
	}
}

// setuidID makes a copy of the program id that runs as its owner, root.
func setuidID(t *testing.T, a *harness.Agent) string {
	t.Helper()
	text, err := os.ReadFile("/usr/bin/id")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(a.Dir, "id")
	if err := os.WriteFile(path, text, 0o755); err != nil { // a program
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o755|os.ModeSetuid); err != nil { // that is what is tested
		t.Fatal(err)
	}
	return path
}

func uidOf(t *testing.T, name string) string {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return u.Uid
}

// doorFiles: the routes of files and logs show nothing that lies outside an allocation, nor secrets.
func doorFiles(t *testing.T, a *harness.Agent) {
	id := a.WaitRunning("victim-none", 1, 10*time.Second)[0].ID
	for _, row := range []struct {
		path string
		ok   bool
	}{
		{"/v1/client/fs/cat/" + id + "?path=alloc/data/mine", true},
		{"/v1/client/fs/cat/" + id + "?path=../../client/executor/executor.log", false},
		{"/v1/client/fs/cat/" + id + "?path=alloc/../../../server/node-id", false},
		{"/v1/client/fs/cat/" + id + "?path=t/local/link", false},
		{"/v1/client/fs/cat/" + id + "?path=t/secrets/mine", false},
		{"/v1/client/fs/ls/" + id + "?path=t/secrets", false},
		{"/v1/client/fs/ls/" + id + "?path=..", false},
		{"/v1/client/fs/logs/" + id + "?task=t&type=stdout&plain=true", true},
		{"/v1/client/fs/logs/" + id + "?task=../data/t&type=stdout&plain=true", false},
		{"/v1/client/fs/logs/" + id + "?task=t&type=../data/t.stdout&plain=true", false},
	} {
		resp, err := http.Get(a.HTTP + row.path) // the agent of the test
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if ok := resp.StatusCode == http.StatusOK; ok != row.ok || ok != bytes.Contains(text, []byte("private")) {
			t.Errorf("%s: %s, want it shown: %v\n%s", row.path, resp.Status, row.ok, text)
		}
	}
}

// TestDoorTasksOfClosedNode: a task whose user cannot enter the agent's directories is told which one and what to do; doing it helps.
// A task without a user runs as the agent's.
func TestDoorTasksOfClosedNode(t *testing.T) {
	t.Parallel()
	root, me := os.Geteuid() == 0, fmt.Sprint(os.Geteuid())
	if u, err := user.LookupId(me); err == nil {
		me = u.Username
	}
	a := harness.NewAgent(t, false, deniesUsers(me)+"plugin \"raw_exec\" {\n  config {\n    enabled = true\n    allow_new_privs = true\n  }\n}\n")
	harness.OpenDataDir(t, a)
	data := filepath.Join(a.Dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	a.Start()
	a.WaitReady(1)
	o := harness.RunShellJob(t, a, "own", map[string]harness.ShellTask{"t": {Script: "echo ran"}})
	if o.Status != structs.AllocClientFailed || !strings.Contains(o.Events, fmt.Sprintf("user %q", me)) || strings.Contains(o.Out["t"], "ran") {
		t.Errorf("the agent's own user is denied, and a task without one: %s\n%s", o.Status, o.Events)
	}
	tasks := map[string]harness.ShellTask{"t": {
		User: "nobody", Script: "grep NoNewPrivs /proc/self/status; " + setuidID(t, a) + " -u", Config: map[string]any{"no_new_privs": false},
	}}
	o = harness.RunShellJob(t, a, "closed", tasks)
	advice := "chmod 711 " + data
	for _, want := range []string{`user "nobody"`, data + " (mode 0700, owner " + me, advice} {
		if o.Status != structs.AllocClientFailed || !strings.Contains(o.Events, want) {
			t.Errorf("a closed data_dir: %s, no %q in\n%s", o.Status, want, o.Events)
		}
	}
	if err := os.Chmod(data, 0o711); err != nil { // as advised
		t.Fatal(err)
	}
	o = harness.RunShellJob(t, a, "opened", tasks)
	want := "NoNewPrivs:\t0\n0\n"
	var fs unix.Statfs_t
	if err := unix.Statfs(a.Dir, &fs); err == nil && fs.Flags&unix.ST_NOSUID != 0 {
		want = "NoNewPrivs:\t0\n" + uidOf(t, "nobody") + "\n"
	}
	switch {
	case !root && (o.Status != structs.AllocClientFailed || !strings.Contains(o.Events, notRoot)):
		t.Errorf("an agent that is not root ran a task as nobody: %s\n%s", o.Status, o.Events)
	case root && (o.Status != structs.AllocClientComplete || o.Out["t"] != want):
		t.Errorf("after %s, with no_new_privs = false allowed: %s: %q, want %q\n%s", advice, o.Status, o.Out["t"], want, o.Events)
	}
	node, _, err := a.API.Nodes().List(t.Context(), nil)
	if err != nil || !slices.ContainsFunc(node, func(n *structs.NodeListStub) bool { return n.Status == structs.NodeStatusReady }) {
		t.Errorf("%v, %v", node, err)
	}
}
