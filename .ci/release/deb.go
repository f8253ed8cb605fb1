package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
)

// deb writes a package for Debian: the program, its manual page and completion, the service, and a configuration to change.
func (r *release) deb(arch string) error {
	work, err := os.MkdirTemp("", "nomadish-deb")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	manual, changes := filepath.Join(work, "nomadish.1.gz"), filepath.Join(work, "CHANGELOG.md.gz")
	if err := compress(filepath.Join(r.root, "docs/reference/nomadish.1"), manual); err != nil {
		return err
	}
	if err := compress(filepath.Join(r.root, "CHANGELOG.md"), changes); err != nil {
		return err
	}
	of := func(name string) string { return filepath.Join(r.root, ".ci/release/package", name) }
	file := func(from, to string, mode os.FileMode) *files.Content {
		return &files.Content{Source: from, Destination: to, FileInfo: &files.ContentFileInfo{Mode: mode, MTime: r.time}}
	}
	dir := func(path string, mode os.FileMode) *files.Content {
		return &files.Content{Destination: path, Type: files.TypeDir, FileInfo: &files.ContentFileInfo{Mode: mode, MTime: r.time}}
	}
	config := file(filepath.Join(r.root, "examples/agent.hcl"), "/etc/nomadish.d/nomadish.hcl", 0o640)
	config.Type = files.TypeConfigNoReplace
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "nomadish", Arch: arch, Platform: "linux", Version: r.version, VersionSchema: "semver",
		Section: "admin", Priority: "optional", License: "MPL-2.0", MTime: r.time,
		Maintainer: "The Nomadish authors <nomadish@localhost>",
		Description: "scheduler for clusters of GPU and HPC machines\n" +
			"One program is the server, the client and the command line. It reads Nomad's job files and provides Nomad's HTTP API.",
		Overridables: nfpm.Overridables{
			Depends:    []string{"procps"}, // kill, by which the service reloads
			Recommends: []string{"bash-completion"},
			Contents: files.Contents{
				file(r.binary(arch), "/usr/bin/nomadish", 0o755),
				file(of("nomadish.service"), "/usr/lib/systemd/system/nomadish.service", 0o644),
				file(of("completion.bash"), "/usr/share/bash-completion/completions/nomadish", 0o644),
				file(manual, "/usr/share/man/man1/nomadish.1.gz", 0o644),
				file(changes, "/usr/share/doc/nomadish/CHANGELOG.md.gz", 0o644),
				file(filepath.Join(r.root, "LICENSE"), "/usr/share/doc/nomadish/copyright", 0o644),
				config, dir("/etc/nomadish.d", 0o750), dir("/var/lib/nomadish", 0o700),
			},
			Scripts: nfpm.Scripts{PostInstall: of("postinst"), PreRemove: of("prerm"), PostRemove: of("postrm")},
		},
	})
	if err := nfpm.PrepareForPackager(info, "deb"); err != nil {
		return fmt.Errorf("deb: %w", err)
	}
	f, err := os.Create(r.named(arch, ".deb"))
	if err != nil {
		return err
	}
	if err := deb.Default.Package(info, f); err != nil {
		_ = f.Close()
		return fmt.Errorf("deb: %w", err)
	}
	return f.Close()
}
