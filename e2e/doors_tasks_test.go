package e2e

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

	nomad "github.com/hashicorp/nomad/api"
	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/structs"
)

// doorTask is a task of a door test: a shell script and the user that it runs as.
type doorTask struct {
	user, script string
	config       map[string]any
}

// doorJob returns a job with one group of tasks, none of which is started twice.
func doorJob(id, kind string, tasks map[string]doorTask) *nomad.Job {
	job := officialJob(id, "")
	job.Type = &kind
	group := job.TaskGroups[0]
	pattern := group.Tasks[0]
	group.RestartPolicy = &nomad.RestartPolicy{Attempts: ptr(0), Mode: ptr("fail")}
	if kind == "batch" {
		group.ReschedulePolicy = &nomad.ReschedulePolicy{Attempts: ptr(0), Unlimited: ptr(false)}
	}
	group.Tasks = nil
	for name, t := range tasks {
		task := *pattern
		task.Name, task.User = name, t.user
		task.Config = map[string]any{"command": "/bin/sh", "args": []string{"-c", t.script}}
		for k, v := range t.config {
			task.Config[k] = v
		}
		group.Tasks = append(group.Tasks, &task)
	}
	return job
}

// outcome is how an allocation of a door test ended.
type outcome struct {
	id, status string
	out        map[string]string // standard output by task
	events     string
}

// runDoor runs a batch job to its end.
func runDoor(t *testing.T, a *agent, id string, tasks map[string]doorTask) outcome {
	t.Helper()
	if _, _, err := a.nomad.Jobs().Register(doorJob(id, "batch", tasks), nil); err != nil {
		t.Fatal(err)
	}
	var o outcome
	within(t, 20*time.Second, "the end of "+id, func(ctx context.Context) error {
		allocs, _, err := a.api.Jobs().Allocations(ctx, id, true, nil)
		if err != nil {
			return err
		}
		for _, alloc := range allocs {
			if alloc.ClientStatus == structs.AllocClientComplete || alloc.ClientStatus == structs.AllocClientFailed {
				o.id, o.status = alloc.ID, alloc.ClientStatus
				return nil
			}
		}
		return errorf("none of %d allocations has ended", len(allocs))
	})
	alloc, _, err := a.nomad.Allocations().Info(o.id, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.out = map[string]string{}
	for name, state := range alloc.TaskStates {
		o.out[name], _ = a.cli("alloc", "logs", o.id, name)
		for _, e := range state.Events {
			o.events += e.Type + ": " + e.DisplayMessage + "\n"
		}
	}
	return o
}

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
	a := newAgent(t, false, deniesUsers("bin", "2000000-2000010"))
	openTo(t, a)
	a.env = []string{"OF_THE_AGENT=hidden"}
	for range 3 { // the agent's parent leaves descriptors open in it
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close() //nolint:errcheck // only read from
		a.files = append(a.files, f)
	}
	a.start()
	a.ready(1)
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

// openTo lets every user reach the directory of the agent's data_dir, which the tests' own directories do not.
func openTo(t *testing.T, a *agent) {
	t.Helper()
	if err := os.Chmod(filepath.Dir(a.dir), 0o711); err != nil { // that is what it is for
		t.Fatal(err)
	}
}

// notRoot is what becomes of a task of another user where the agent is not root.
const notRoot = "only an agent that runs as root can run tasks as other users"

// doorOthers: a task reads and writes nothing of another job's, whoever both run as.
func doorOthers(t *testing.T, a *agent, root bool) {
	victims := map[string]string{"none": ""}
	if root {
		victims["nobody"] = "nobody"
	}
	for name, user := range victims {
		id := "victim-" + name
		if _, _, err := a.nomad.Jobs().Register(doorJob(id, "service", map[string]doorTask{"t": {user: user, script: detached}}), nil); err != nil {
			t.Fatal(err)
		}
		alloc := a.running(id, 1, 10*time.Second)[0].ID
		dir := filepath.Join(a.dir, "data", "alloc", alloc)
		within(t, 10*time.Second, "the victim's output", func(context.Context) error {
			if text, err := os.ReadFile(filepath.Join(dir, "alloc", "logs", "t.stdout.0")); err != nil || string(text) != "private\n" {
				return errorf("%q, %v", text, err)
			}
			return nil
		})
		for _, attacker := range []string{"nobody", "daemon"} {
			if uidOf(t, attacker) == fmt.Sprint(os.Geteuid()) {
				continue // all tasks of an agent that is not root run as its user, and reach each other
			}
			o := runDoor(t, a, name+"-from-"+attacker, map[string]doorTask{"t": {user: attacker, script: fmt.Sprintf(reach, dir)}})
			switch {
			case !root && (o.status != structs.AllocClientFailed || !strings.Contains(o.events, notRoot)):
				t.Errorf("an agent that is not root ran a task as %s: %s\n%s", attacker, o.status, o.events)
			case root && o.status != structs.AllocClientComplete:
				t.Errorf("%s: %s\n%s", attacker, o.status, o.events)
			case root && o.out["t"] != "":
				t.Errorf("a task as %s reached another job's as %q:\n%s", attacker, user, o.out["t"])
			}
		}
		doorModes(t, a, dir)
	}
}

// doorModes: neither the allocation nor what the agent keeps for itself is open to all.
func doorModes(t *testing.T, a *agent, dir string) {
	t.Helper()
	for path, others := range map[string]os.FileMode{
		dir: 0, dir + "/alloc": 0, dir + "/alloc/data": 0, dir + "/alloc/logs": 0, dir + "/alloc/logs/t.stdout.0": 0, dir + "/t/local": 0,
		dir + "/t/secrets": 0, dir + "/t/tmp": 0, a.dir + "/data/server": 0, a.dir + "/data/client": 0, a.dir + "/data/alloc": 0o1, a.dir + "/data": 0o1,
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
func doorShared(t *testing.T, a *agent, root bool) {
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
	o := runDoor(t, a, "shared", map[string]doorTask{
		"x": {user: users[0], script: script("x", "y", "z")}, "y": {user: users[1], script: script("y", "z", "x")}, "z": {user: users[2], script: script("z", "x", "y")},
	})
	for _, name := range []string{"x", "y", "z"} {
		if out := o.out[name]; o.status != structs.AllocClientComplete || strings.Count(out, "of ") != 2 || !strings.HasSuffix(out, "own logs\n") {
			t.Errorf("task %s: %s: %q\n%s", name, o.status, out, o.events)
		}
	}
}

// doorInherited: a task has three descriptors, gains no privileges, and sees nothing of the agent's environment.
func doorInherited(t *testing.T, a *agent, root bool) {
	gain := setuidID(t, a)
	script := "ls /proc/$$/fd; grep NoNewPrivs /proc/self/status; env; " + gain + " -u"
	for _, name := range []string{"", "nobody"} {
		if !root && name != "" {
			continue
		}
		o := runDoor(t, a, "inherits-"+name, map[string]doorTask{"t": {user: name, script: script}})
		out, uid := o.out["t"], fmt.Sprint(os.Geteuid())
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
		task doorTask
		want string
	}{
		"denied":  {doorTask{user: "bin"}, `user "bin"`},
		"new":     {doorTask{config: map[string]any{"no_new_privs": false}}, "allow_new_privs"},
		"unknown": {doorTask{user: "no-such-user"}, "no-such-user"},
	} {
		row.task.script = "echo ran"
		o := runDoor(t, a, "refused-"+id, map[string]doorTask{"t": row.task})
		if o.status != structs.AllocClientFailed || !strings.Contains(o.events, row.want) || strings.Contains(o.out["t"], "ran") {
			t.Errorf("%s: %s, want it refused with %q:\n%s", id, o.status, row.want, o.events)
		}
	}
}

// setuidID makes a copy of the program id that runs as its owner, root.
func setuidID(t *testing.T, a *agent) string {
	t.Helper()
	text, err := os.ReadFile("/usr/bin/id")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(a.dir, "id")
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
func doorFiles(t *testing.T, a *agent) {
	id := a.running("victim-none", 1, 10*time.Second)[0].ID
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
		resp, err := http.Get(a.http + row.path) // the agent of the test
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
	a := newAgent(t, false, deniesUsers(me)+"plugin \"raw_exec\" {\n  config {\n    enabled = true\n    allow_new_privs = true\n  }\n}\n")
	openTo(t, a)
	data := filepath.Join(a.dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	a.start()
	a.ready(1)
	o := runDoor(t, a, "own", map[string]doorTask{"t": {script: "echo ran"}})
	if o.status != structs.AllocClientFailed || !strings.Contains(o.events, fmt.Sprintf("user %q", me)) || strings.Contains(o.out["t"], "ran") {
		t.Errorf("the agent's own user is denied, and a task without one: %s\n%s", o.status, o.events)
	}
	tasks := map[string]doorTask{"t": {
		user: "nobody", script: "grep NoNewPrivs /proc/self/status; " + setuidID(t, a) + " -u", config: map[string]any{"no_new_privs": false},
	}}
	o = runDoor(t, a, "closed", tasks)
	advice := "chmod 711 " + data
	for _, want := range []string{`user "nobody"`, data + " (mode 0700, owner " + me, advice} {
		if o.status != structs.AllocClientFailed || !strings.Contains(o.events, want) {
			t.Errorf("a closed data_dir: %s, no %q in\n%s", o.status, want, o.events)
		}
	}
	if err := os.Chmod(data, 0o711); err != nil { // as advised
		t.Fatal(err)
	}
	o = runDoor(t, a, "opened", tasks)
	want := "NoNewPrivs:\t0\n0\n"
	var fs unix.Statfs_t
	if err := unix.Statfs(a.dir, &fs); err == nil && fs.Flags&unix.ST_NOSUID != 0 {
		want = "NoNewPrivs:\t0\n" + uidOf(t, "nobody") + "\n"
	}
	switch {
	case !root && (o.status != structs.AllocClientFailed || !strings.Contains(o.events, notRoot)):
		t.Errorf("an agent that is not root ran a task as nobody: %s\n%s", o.status, o.events)
	case root && (o.status != structs.AllocClientComplete || o.out["t"] != want):
		t.Errorf("after %s, with no_new_privs = false allowed: %s: %q, want %q\n%s", advice, o.status, o.out["t"], want, o.events)
	}
	node, _, err := a.api.Nodes().List(t.Context(), nil)
	if err != nil || !slices.ContainsFunc(node, func(n *structs.NodeListStub) bool { return n.Status == structs.NodeStatusReady }) {
		t.Errorf("%v, %v", node, err)
	}
}
