package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const untidy, tidy = "job \"x\" {\na=1\n}\n", "job \"x\" {\n  a = 1\n}\n"

// tree makes files in a new directory, by their names.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil { // its mode is to be kept
			t.Fatal(err)
		}
	}
	return dir
}

func text(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path) // a test's own
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func formats(t *testing.T, args ...string) result {
	t.Helper()
	var none *fake
	return none.run(t, append([]string{"fmt"}, args...)...)
}

func TestFmtFormatsFilesAndDirectories(t *testing.T) {
	files := map[string]string{
		"a.hcl": untidy, "b.nomad": untidy, "c.nomad.hcl": tidy, "d.json": "{ }", "e.txt": untidy, ".hidden.hcl": untidy, "sub/f.hcl": untidy, ".git/g.hcl": untidy,
	}
	dir := tree(t, files)
	if err := os.Chmod(filepath.Join(dir, "a.hcl"), 0o604); err != nil { // its mode is to be kept
		t.Fatal(err)
	}
	got := formats(t, dir)
	if want := filepath.Join(dir, "a.hcl") + "\n" + filepath.Join(dir, "b.nomad") + "\n"; got.code != exitDone || got.out != want || got.err != "" {
		t.Fatalf("exit code %d, output %q, stderr %q, want %q", got.code, got.out, got.err, want)
	}
	for name := range files {
		want := files[name]
		if name == "a.hcl" || name == "b.nomad" {
			want = tidy
		}
		if have := text(t, filepath.Join(dir, name)); have != want {
			t.Errorf("%s: %q, want %q", name, have, want)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "a.hcl")); err != nil || info.Mode().Perm() != 0o604 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 8 {
		t.Errorf("something is left behind: %v", entries)
	}
	if got := formats(t, "-recursive", dir); got.out != filepath.Join(dir, "sub", "f.hcl")+"\n" || text(t, filepath.Join(dir, "sub", "f.hcl")) != tidy {
		t.Errorf("-recursive: output %q, stderr %q", got.out, got.err)
	}
	t.Chdir(dir)
	if err := os.WriteFile("a.hcl", []byte(untidy), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := formats(t); got.out != "a.hcl\n" || text(t, "a.hcl") != tidy { // the current directory
		t.Errorf("no path: output %q, stderr %q", got.out, got.err)
	}
}

func TestFmtChecksWithoutWriting(t *testing.T) {
	dir := tree(t, map[string]string{"a.hcl": untidy, "b.hcl": tidy})
	a, b := filepath.Join(dir, "a.hcl"), filepath.Join(dir, "b.hcl")
	f := func(code int, out string, args ...string) {
		t.Helper()
		if got := formats(t, args...); got.code != code || got.out != out || got.err != "" {
			t.Errorf("%q: exit code %d, output %q, stderr %q", args, got.code, got.out, got.err)
		}
		if text(t, a) != untidy {
			t.Errorf("%q: the file was written", args)
		}
	}
	f(exitFailed, a+"\n", "-check", dir)
	f(exitFailed, "", "-check", "-list=false", a, b)
	f(exitFailed, a+"\n", "-check", "-write", a)
	f(exitDone, "", "-check", b)
	f(exitDone, a+"\n", "-write=false", dir)
	f(exitDone, tidy, "-write=false", "-list=false", a)
}

func TestFmtRefuses(t *testing.T) {
	dir := tree(t, map[string]string{"bad.hcl": "job {", "good.hcl": untidy, "x.json": "{}"})
	f := func(want string, args ...string) {
		t.Helper()
		if got := formats(t, args...); got.code != exitFailed || !strings.Contains(got.err, want) {
			t.Errorf("%q: exit code %d, output %q, stderr %q", args, got.code, got.out, got.err)
		}
	}
	f("bad.hcl:1", dir) // and goes on with the others
	if text(t, filepath.Join(dir, "good.hcl")) != tidy || text(t, filepath.Join(dir, "bad.hcl")) != "job {" {
		t.Errorf("one file with an error keeps others back, or was written")
	}
	f("end in .nomad or .hcl", filepath.Join(dir, "x.json"))
	f("no such file", filepath.Join(dir, "none.hcl"))
	f("cannot be given with other paths", "-", dir)
}

func TestFmtFollowsLinksAndKeepsThem(t *testing.T) {
	dir := tree(t, map[string]string{"real/a.hcl": untidy})
	link := filepath.Join(dir, "link.hcl")
	if err := os.Symlink(filepath.Join("real", "a.hcl"), link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".", filepath.Join(dir, "loop.hcl")); err != nil {
		t.Fatal(err)
	}
	if got := formats(t, "-recursive", dir); got.code != exitDone || got.err != "" {
		t.Fatalf("exit code %d, stderr %q", got.code, got.err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
	if text(t, filepath.Join(dir, "real", "a.hcl")) != tidy {
		t.Error("what the link leads to is as it was")
	}
}

func TestFmtReadsStandardInput(t *testing.T) {
	var none *fake
	if got := none.runIn(t, untidy, "fmt", "-"); got.code != exitDone || got.out != tidy {
		t.Errorf("exit code %d, output %q, stderr %q", got.code, got.out, got.err)
	}
	if got := none.runIn(t, untidy, "fmt", "-check", "-"); got.code != exitFailed || got.out != "" {
		t.Errorf("-check: exit code %d, output %q", got.code, got.out)
	}
	if got := none.runIn(t, "job {", "fmt", "-"); got.code != exitFailed || !strings.Contains(got.err, "<stdin>:1") || got.out != "" {
		t.Errorf("nonsense: exit code %d, output %q, stderr %q", got.code, got.out, got.err)
	}
}
