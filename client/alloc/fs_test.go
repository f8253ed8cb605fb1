package alloc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/client/users"
	"github.com/nomadish/nomadish/structs"
)

func testDir(t *testing.T) Dir {
	t.Helper()
	base := t.TempDir()
	if err := os.WriteFile(filepath.Join(base, "outside"), []byte("outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := NewDir(base, "0190aaaa-0000-7000-8000-000000000001")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.buildTop(ownAccess, noGroup); err != nil {
		t.Fatal(err)
	}
	if err := d.buildShared(ownAccess); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"web", "db"} {
		if err := d.buildTask(name, users.User{UID: os.Geteuid()}, ownAccess); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]string{"web/local/a.txt": "hello world", "web/secrets/key": "secret", "alloc/data/x": "x"}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(d.Path(), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	links := map[string]string{
		"web/local/up": "../../../outside", "web/local/abs": filepath.Join(base, "outside"), "web/local/root": "/",
		"web/local/key": "../secrets/key", "web/local/sec": "../secrets", "web/local/data": "../../alloc/data",
		"web/local/loop": "loop", "web/local/proc": "/proc/self/environ",
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(d.Path(), name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(d.Path(), "web/local/pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	return d
}

func read(d Dir, req ReadRequest) (string, error) {
	var b strings.Builder
	err := d.Read(context.Background(), req, func(f *structs.StreamFrame) error { b.Write(f.Data); return nil })
	return b.String(), err
}

func TestFilesStayInside(t *testing.T) {
	d := testDir(t)
	f := func(path string, code structs.Code) {
		t.Helper()
		_, err := read(d, ReadRequest{Path: path})
		if got := structs.CodeOf(err); err == nil || got != code {
			t.Errorf("read %q: %v, want %s", path, err, code)
		}
		if err != nil && strings.Contains(err.Error(), d.Path()) {
			t.Errorf("read %q: the error shows the node's path: %v", path, err)
		}
	}
	f("../outside", structs.CodeForbidden)
	f("web/../../outside", structs.CodeForbidden)
	f("/../outside", structs.CodeForbidden)
	f("web/local/up", structs.CodeForbidden)
	f("web/local/abs", structs.CodeForbidden)
	f("web/local/root/etc/passwd", structs.CodeForbidden)
	f("web/local/proc", structs.CodeForbidden)
	f("web/local/loop", structs.CodeForbidden)
	f("web/secrets/key", structs.CodeForbidden)
	f("//web//secrets/./key", structs.CodeForbidden)
	f("web/local/key", structs.CodeForbidden)
	f("web/local/sec/key", structs.CodeForbidden)
	f("web/local/pipe", structs.CodeBadRequest)
	f("web/local", structs.CodeBadRequest)
	f("", structs.CodeBadRequest)
	f("nothing", structs.CodeNotFound)
	f("web/local/a.txt\x00", structs.CodeForbidden)
	if _, err := d.List("web/local/sec"); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("list secrets through a link: %v", err)
	}
	if _, err := d.Stat("web/secrets"); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("stat secrets: %v", err)
	}
	if _, err := (Dir{}).List("/"); structs.CodeOf(err) != structs.CodeUnsupported {
		t.Errorf("list a simulated allocation: %v", err)
	}
}

func TestReadParts(t *testing.T) {
	d := testDir(t)
	f := func(req ReadRequest, want string) {
		t.Helper()
		req.Path = "web/local/a.txt"
		got, err := read(d, req)
		if err != nil || got != want {
			t.Errorf("%+v: %q, %v; want %q", req, got, err, want)
		}
	}
	f(ReadRequest{}, "hello world")
	f(ReadRequest{Offset: 6}, "world")
	f(ReadRequest{Limit: 5}, "hello")
	f(ReadRequest{Offset: 3, Limit: 4}, "lo w")
	f(ReadRequest{FromEnd: true, Offset: 5}, "world")
	f(ReadRequest{FromEnd: true, Offset: 500}, "hello world")
	f(ReadRequest{Offset: 500}, "")
	if got, err := read(d, ReadRequest{Path: "web/local/data/x"}); err != nil || got != "x" {
		t.Errorf("a link that stays inside: %q, %v", got, err)
	}
	if _, err := read(d, ReadRequest{Path: "web/local/a.txt", Offset: -1}); structs.CodeOf(err) != structs.CodeBadRequest {
		t.Errorf("negative offset: %v", err)
	}
}

func TestFollow(t *testing.T) {
	d := testDir(t)
	path := filepath.Join(d.Path(), "web/local/a.txt")
	var got strings.Builder
	var events []string
	err := d.Read(t.Context(), ReadRequest{Path: "web/local/a.txt", Follow: true}, func(f *structs.StreamFrame) error {
		got.Write(f.Data)
		switch {
		case f.FileEvent != "":
			events = append(events, f.FileEvent)
			if f.FileEvent == "file truncated" {
				return os.Remove(path)
			}
		case got.String() == "hello world":
			file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = file.WriteString("!")
			return errors.Join(err, file.Close())
		case got.String() == "hello world!":
			return os.Truncate(path, 0)
		}
		return nil
	})
	if err != nil || strings.Join(events, ",") != "file truncated,file deleted" {
		t.Errorf("followed %q, events %q, %v", got.String(), events, err)
	}
}

func TestListAndStat(t *testing.T) {
	d := testDir(t)
	files, err := d.List("/")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	if got := strings.Join(names, " "); got != "alloc db web" {
		t.Errorf("listed %q", got)
	}
	info, err := d.Stat("/web/local/a.txt")
	if err != nil || info.IsDir || info.Size != 11 || info.ContentType != "text/plain; charset=utf-8" {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestNames(t *testing.T) {
	for _, id := range []string{"", ".", "..", "a/b", "../x", "/"} {
		if _, err := NewDir("/base", id); err == nil {
			t.Errorf("allocation ID %q was taken", id)
		}
	}
	for _, name := range []string{"", ".", "..", "a/b", "../x", "alloc", strings.Repeat("x", 300)} {
		if err := ValidTaskName(name); err == nil {
			t.Errorf("task name %q was taken", name)
		}
	}
}

func TestPayload(t *testing.T) {
	d := testDir(t)
	if err := d.WritePayload("db", "in/put.json", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if got, err := read(d, ReadRequest{Path: "db/local/in/put.json"}); err != nil || got != "{}" {
		t.Errorf("%q, %v", got, err)
	}
	for _, name := range []string{"../../x", "/etc/x"} {
		if err := d.WritePayload("db", name, nil); err == nil {
			t.Errorf("payload file %q was written", name)
		}
	}
}
