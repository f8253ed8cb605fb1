package atomicfile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, text := range []string{"first\n", "", "a longer one than the first\n"} {
		if err := Write(path, text); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path) // a test's own
		if err != nil || string(got) != text {
			t.Fatalf("%q, %v; not %q", got, err, text)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%v, %v; not 0600", info.Mode(), err)
		}
	}
	if err := Write(filepath.Join(dir, "no", "file"), "x"); err == nil {
		t.Error("written where no folder is")
	}
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(dir, "taken"), "x"); err == nil {
		t.Error("a folder was replaced")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Fatalf("%v, %v: something is left over", left, err)
	}
}
