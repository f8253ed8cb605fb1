package harness

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// root is the checkout, from where the tests of any folder run.
const root = "../.."

var (
	// Bin is the binary to test.
	Bin string
	// FaultsLong reports whether faults are to last as long as in earnest.
	FaultsLong bool
	// logsTo is where the logs of agents go whose test failed; empty: nowhere.
	logsTo string
)

func init() {
	flag.StringVar(&Bin, "bin", "", "the nomadish binary to test, from the root of the checkout; built when empty")
	flag.BoolVar(&FaultsLong, "faults", false, "run the tests of faults as long as the faults last in earnest (make faults)")
	flag.StringVar(&logsTo, "logs", "", "a directory for the agents' logs of tests that fail")
}

// Main runs the tests of a package, with a binary that it builds unless one is stated, and ends the process.
func Main(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if flag.Lookup("test.list").Value.String() != "" { // the names need no binary
		return m.Run()
	}
	if Bin == "" {
		dir, err := os.MkdirTemp("", "nomadish-e2e-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir) //nolint:errcheck // the system's own cleaning gets it
		Bin = filepath.Join(dir, "nomadish")
		if err := provide(Bin); err != nil {
			fmt.Fprintf(os.Stderr, "the binary to test: %v\n", err)
			return 1
		}
	}
	if !filepath.IsAbs(Bin) { // agents and commands run in other directories
		var err error
		if Bin, err = filepath.Abs(filepath.Join(root, Bin)); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	return max(code, tidyCgroups())
}

// provide puts the binary of the checkout at a path. It is built in the checkout's bin folder, by one package of tests at a time,
// so that it is linked once for all: Go does not link anew what is up to date. The path is a name of its own of that file, which a later
// build does not change.
func provide(path string) error {
	shared := filepath.Join(root, "bin", "nomadish-e2e")
	if Raced {
		shared += "-race"
	}
	lock, err := lockFile(shared + ".lock")
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return build(path) // a checkout of another user
	}
	if err != nil {
		return err
	}
	defer lock.Close() //nolint:errcheck // nothing was written
	if err := build(shared); err != nil {
		return err
	}
	if os.Link(shared, path) == nil {
		return nil
	}
	return copyFile(shared, path) // of another file system
}

// lockFile opens a file and locks it until it is closed.
func lockFile(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// build builds the binary, with the race detector if the tests run with it.
func build(path string) error {
	args := []string{"build", "-trimpath", "-o", path}
	if Raced {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, root)...).CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // read only
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
