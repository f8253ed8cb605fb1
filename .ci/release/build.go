package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

const (
	programPath = "github.com/nomadish/nomadish"
	probePath   = "client/gpu/bin/probe.gz" // what reads the GPUs, embedded in the program
)

// build builds the program for an architecture, with the probe of the same one in it.
func (r *release) build(ctx context.Context, arch string) error {
	work, err := os.MkdirTemp("", "nomadish-release")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	probe := filepath.Join(work, "probe")
	if err := r.goBuild(ctx, arch, probe, "./client/gpu/probe", "-ldflags", "-s -w"); err != nil {
		return err
	}
	if err := compress(probe, probe+".gz"); err != nil {
		return err
	}
	// The checkout keeps the probe of the machine itself, which its tests run.
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(r.root, probePath): probe + ".gz"}})
	if err != nil {
		return err
	}
	replaced := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(replaced, overlay, 0o644); err != nil {
		return err
	}
	flags := "-s -w -X " + programPath + "/command.Version=" + r.describe
	if err := r.goBuild(ctx, arch, r.binary(arch), ".", "-overlay", replaced, "-ldflags", flags); err != nil {
		return err
	}
	switch {
	case arch == runtime.GOARCH:
		return r.stateVersion(ctx, r.binary(arch))
	case r.version == "":
		return fmt.Errorf("its version is not known: build for %s, this machine's architecture, first", runtime.GOARCH)
	}
	return nil
}

func (r *release) goBuild(ctx context.Context, arch, out, pkg string, flags ...string) error {
	args := append([]string{"build", "-trimpath", "-o", out}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=-buildvcs=auto")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build %s: %w", pkg, err)
	}
	return nil
}

// compress writes a compressed file that states no name and no time.
func compress(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	packed, err := gzipped(content)
	if err != nil {
		return err
	}
	return os.WriteFile(to, packed, 0o644)
}

func gzipped(content []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
