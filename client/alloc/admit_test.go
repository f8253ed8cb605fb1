package alloc

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/client/driver/mock"
	"github.com/nomadish/nomadish/client/users"
	"github.com/nomadish/nomadish/structs"
)

// grouping is a driver whose tasks get groups, or do not.
type grouping struct {
	*mock.Driver
	adds bool
}

func (g grouping) AddsGroups(context.Context) (bool, error) { return g.adds, nil }

// admitted makes the directories of a group's tasks, which run as these users, and returns the groups of the last one.
func admitted(t *testing.T, n *node, config *Config, base, id string, tasks ...string) (string, []int, error) {
	t.Helper()
	a := service(nil, func(g *structs.TaskGroup) {
		g.Tasks = nil
		for i, u := range tasks {
			g.Tasks = append(g.Tasks, &structs.Task{Name: fmt.Sprintf("t%d", i), Driver: "mock_driver", User: u})
		}
	})
	dir, err := NewDir(base, id)
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(config, dir, a)
	if err != nil {
		t.Fatal(err)
	}
	defer n.close(r)
	var groups []int
	for range 2 { // a task that starts again finds its directories
		for _, task := range a.Job.TaskGroups[0].Tasks {
			if groups, err = r.admit(t.Context(), a, task); err != nil {
				return dir.Path(), nil, err
			}
		}
	}
	return dir.Path(), groups, nil
}

// shown is a directory's mode, owner and group.
func shown(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	st, _ := info.Sys().(*syscall.Stat_t)
	mode := fmt.Sprintf("%04o", info.Mode().Perm())
	if info.Mode()&fs.ModeSetgid != 0 {
		mode = fmt.Sprintf("2%03o", info.Mode().Perm())
	}
	return fmt.Sprintf("%s %d:%d", mode, st.Uid, st.Gid)
}

// openBase is a directory that every user can enter.
func openBase(t *testing.T) string {
	t.Helper()
	base := t.TempDir()
	for _, dir := range []string{filepath.Dir(base), base} {
		if err := os.Chmod(dir, 0o711); err != nil { // that is what it is for
			t.Fatal(err)
		}
	}
	return base
}

// TestAdmitModes: who may enter an allocation's directories, by the users of its tasks and by what keeps them apart.
func TestAdmitModes(t *testing.T) {
	uid, gid := os.Geteuid(), os.Getegid()
	own := fmt.Sprintf("0700 %d:%d", uid, gid)
	type want struct{ top, shared, data, logs, task, local string }
	rows := []struct {
		name  string
		tasks []string
		pool  bool
		adds  bool
		want  want
	}{{"own", []string{"", ""}, true, true, want{own, own, own, own, own, own}}}
	if uid == 0 { // only root can run tasks as others
		nobody, err := users.Lookup("nobody")
		if err != nil {
			t.Fatal(err)
		}
		its := fmt.Sprintf("%d:%d", nobody.UID, nobody.GID)
		const group = "0:2100000003"
		primary := fmt.Sprintf("0:%d", nobody.GID)
		alone := want{"0710 " + group, "2750 " + group, fmt.Sprintf("0700 %d:2100000003", nobody.UID), "2750 " + group, "0710 " + group, "0700 " + its}
		byPrimary := want{"0710 " + primary, "2750 " + primary, "0700 " + its, "2750 " + primary, "0710 " + primary, "0700 " + its}
		rows = append(rows, []struct {
			name  string
			tasks []string
			pool  bool
			adds  bool
			want  want
		}{
			{"nobody", []string{"nobody"}, true, true, alone},
			{"nobody beside root", []string{"", "nobody"}, true, true, alone},
			{"several", []string{"daemon", "nobody"}, true, true,
				want{"0710 " + group, "2750 " + group, "2770 " + group, "2750 " + group, "0710 " + group, "0700 " + its}},
			{"nobody, no pool", []string{"nobody"}, false, true, byPrimary},
			{"nobody, an executor of an earlier version", []string{"nobody"}, true, false, byPrimary},
			{"several, no pool", []string{"daemon", "nobody"}, false, true,
				want{"0711 0:0", "0755 0:0", "0777 0:0", "0755 0:0", "0711 0:0", "0700 " + its}},
		}...)
	}
	for _, row := range rows {
		n, base := newNode(t), openBase(t)
		config := n.config()
		drivers, err := driver.NewRegistry(grouping{mock.New(nil), row.adds})
		if err != nil {
			t.Fatal(err)
		}
		config.Drivers = drivers
		if row.pool {
			config.Groups = NewGroupPool(base, 2100000003, 2100000003)
		}
		dir, groups, err := admitted(t, n, config, base, "a", row.tasks...)
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		last := fmt.Sprintf("%s/t%d", dir, len(row.tasks)-1)
		got := want{shown(t, dir), shown(t, dir+"/alloc"), shown(t, dir+"/alloc/data"), shown(t, dir+"/alloc/logs"), shown(t, last), shown(t, last+"/local")}
		if got != row.want {
			t.Errorf("%s:\n%+v, want\n%+v", row.name, got, row.want)
		}
		if has := len(groups) == 1; has != strings.Contains(row.want.top, "2100000003") {
			t.Errorf("%s: the task's groups are %v", row.name, groups)
		}
	}
}

// TestGroupPool: no two allocations have one group, also after the agent has started anew; what is removed is free again.
func TestGroupPool(t *testing.T) {
	if os.Geteuid() != 0 {
		p := NewGroupPool(t.TempDir(), 5, 6)
		if gid, err := p.assign(p.base); gid != -1 || err != nil {
			t.Errorf("one who is not root gave a directory to another group: %d, %v", gid, err)
		}
		return
	}
	base := openBase(t)
	seen := map[int]bool{}
	take := func(p *GroupPool, name string) int {
		t.Helper()
		dir := filepath.Join(base, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		gid, err := p.assign(dir)
		if err != nil || gid >= 0 && groupOfDir(dir) != gid {
			t.Fatalf("%d, %v", gid, err)
		}
		return gid
	}
	for i := range 4 { // each with a pool of its own, as after a new start
		gid := take(NewGroupPool(base, 2100000000, 2100000003), fmt.Sprint(i))
		if seen[gid] || gid < 2100000000 || gid > 2100000003 {
			t.Errorf("group %d again, or none of the pool's", gid)
		}
		seen[gid] = true
	}
	p := NewGroupPool(base, 2100000000, 2100000003)
	if gid := take(p, "none left"); gid != -1 {
		t.Errorf("group %d, though all are taken", gid)
	}
	free := groupOfDir(filepath.Join(base, "2"))
	if err := os.Remove(filepath.Join(base, "2")); err != nil {
		t.Fatal(err)
	}
	if gid := take(p, "after removal"); gid != free {
		t.Errorf("group %d, want %d, which was given back", gid, free)
	}
	if NewGroupPool(base, -1, 0) != nil {
		t.Error("a pool of nothing")
	}
}

// TestAdmitRefuses: a task is refused for its user, or for a directory that the user cannot enter; a task without a user
// counts as the agent's.
func TestAdmitRefuses(t *testing.T) {
	own, err := users.Lookup("")
	if err != nil {
		t.Fatal(err)
	}
	denied, err := users.ParseSet([]string{own.Name, "no-such-user"})
	if err != nil {
		t.Fatal(err)
	}
	n, base := newNode(t), openBase(t)
	config := n.config()
	config.Users.Denied = denied
	dir, _, err := admitted(t, n, config, base, "a", "")
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", own.Name)) || !strings.Contains(err.Error(), "denied") {
		t.Errorf("the agent's own user is denied: %v", err)
	}
	if _, serr := os.Lstat(dir); !os.IsNotExist(serr) {
		t.Errorf("a refused task's directory: %v", serr)
	}
	config.Users = users.Policy{}
	if _, _, err = admitted(t, n, config, base, "b", "no-such-user"); err == nil || !strings.Contains(err.Error(), "no-such-user") {
		t.Error(err)
	}
	if err := os.Chmod(base, 0o700); err != nil {
		t.Fatal(err)
	}
	_, _, err = admitted(t, n, config, base, "c", "nobody")
	if err == nil || !strings.Contains(err.Error(), `user "nobody" cannot enter `+base) || !strings.Contains(err.Error(), "chmod 711 "+base) {
		t.Errorf("a closed directory: %v", err)
	}
}

// TestAdmitKeepsWhatIs: an allocation that an earlier version made stays open to its tasks, which have no group; one whose
// making was broken off is finished.
func TestAdmitKeepsWhatIs(t *testing.T) {
	if os.Geteuid() != 0 {
		return // there is but one way for the agent's own user
	}
	n, base := newNode(t), openBase(t)
	config := n.config()
	drivers, err := driver.NewRegistry(grouping{mock.New(nil), true})
	if err != nil {
		t.Fatal(err)
	}
	config.Drivers, config.Groups = drivers, NewGroupPool(base, 2100000000, 2100000001)
	for _, row := range []struct {
		id   string
		mode os.FileMode
		top  string
	}{{"earlier", 0o711, "0711 0:0"}, {"broken-off", 0o700, "0710 0:21000000"}} {
		top := filepath.Join(base, row.id)
		if err := os.Mkdir(top, row.mode); err != nil {
			t.Fatal(err)
		}
		if _, groups, err := admitted(t, n, config, base, row.id, "nobody"); err != nil || !strings.HasPrefix(shown(t, top), row.top) || (len(groups) == 1) != (row.mode == 0o700) {
			t.Errorf("%s: %s, groups %v, %v", row.id, shown(t, top), groups, err)
		}
	}
}
