// Command release makes the files of a release from a checkout: static binaries for linux on amd64 and arm64, a package for Debian, a
// container image and a list of components for each, and the checksums of all. The same checkout gives the same bytes.
//
// It must never publish anything: whoever makes a release looks at it first.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// release is what is made.
type release struct {
	root, out string
	describe  string    // what git states of the checkout: goes into the binary
	version   string    // the semantic version that the binary states then, without a v
	time      time.Time // of the commit: of all files in what is packed
}

func main() {
	root := flag.String("root", "../..", "the checkout")
	out := flag.String("out", "dist", "the directory to make, relative to the checkout; what was in it is deleted")
	describe := flag.String("version", "", "the version, as git describes it")
	arches := flag.String("arch", "amd64,arm64", "the architectures")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *root, *out, *describe, strings.Split(*arches, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, out, describe string, arches []string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	r := &release{root: root, out: out, describe: describe}
	if !filepath.IsAbs(out) {
		r.out = filepath.Join(root, out)
	}
	if err := errors.Join(os.RemoveAll(r.out), os.MkdirAll(r.out, 0o755)); err != nil {
		return err
	}
	if r.time, err = r.commitTime(ctx); err != nil {
		return err
	}
	for _, arch := range arches {
		if err := r.build(ctx, arch); err != nil {
			return fmt.Errorf("%s: %w", arch, err)
		}
		for _, make := range []func(string) error{r.components, r.deb, r.image} {
			if err := make(arch); err != nil {
				return fmt.Errorf("%s: %w", arch, err)
			}
		}
	}
	return r.checksums()
}

// commitTime is when the checkout was committed. A source archive, which knows no commits, states it in SOURCE_DATE_EPOCH.
func (r *release) commitTime(ctx context.Context) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		git := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct")
		git.Dir = r.root
		out, err := git.Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("when the checkout was committed: %w (outside of git, set SOURCE_DATE_EPOCH to it, in seconds)", err)
		}
		text = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("when the checkout was committed: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// binary is the file of the program for an architecture.
func (r *release) binary(arch string) string { return filepath.Join(r.out, "nomadish-linux-"+arch) }

// named is the file of a release for an architecture.
func (r *release) named(arch, suffix string) string {
	return filepath.Join(r.out, "nomadish_"+strings.ReplaceAll(r.version, "+", "-")+"_linux_"+arch+suffix)
}

// stated matches what `nomadish -version` prints.
var stated = regexp.MustCompile(`^Nomadish v(\S+)\s*$`)

// stateVersion has the binary say which version it is, if this machine can run it.
func (r *release) stateVersion(ctx context.Context, binary string) error {
	out, err := exec.CommandContext(ctx, binary, "-version").Output()
	if err != nil {
		return err
	}
	m := stated.FindStringSubmatch(string(out))
	if m == nil {
		return fmt.Errorf("%s -version printed %q", binary, out)
	}
	r.version = m[1]
	return nil
}

// checksums are of all files, as sha256sum reads them.
func (r *release) checksums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var lines []string
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		content, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		lines = append(lines, fmt.Sprintf("%x  %s\n", sha256.Sum256(content), e.Name()))
		fmt.Printf("%10d  %s\n", len(content), e.Name())
	}
	slices.Sort(lines)
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(strings.Join(lines, "")), 0o644)
}
