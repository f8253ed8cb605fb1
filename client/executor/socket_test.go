package executor

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSocketOfAnother: an executor whose directory was emptied under it leaves the socket of the one that came after it alone.
func TestSocketOfAnother(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, socketName)
	listen := func() os.FileInfo {
		t.Helper()
		l, err := listenSocket(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	first := listen()
	if err := os.Rename(path, path+".gone"); err != nil { // its inode stays taken
		t.Fatal(err)
	}
	second := listen()
	if err := removeSocket(dir, first); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Fatalf("the socket of the one that serves now: %v", err)
	}
	for range 2 { // gone is gone
		if err := removeSocket(dir, second); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Fatalf("its own socket: %v", err)
		}
	}
}
