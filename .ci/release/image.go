package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// image writes a container image with nothing in it but the program, as `docker load` and `podman load` read it.
func (r *release) image(arch string) error {
	layer, err := r.layer(arch)
	if err != nil {
		return fmt.Errorf("image: %w", err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return fmt.Errorf("image: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return fmt.Errorf("image: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: r.time}
	config.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/nomadish"},
		Cmd:        []string{"agent", "-config", "/etc/nomadish.d"},
		StopSignal: "SIGINT",
		Volumes:    map[string]struct{}{"/etc/nomadish.d": {}, "/var/lib/nomadish": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "nomadish",
			"org.opencontainers.image.version":  r.version,
			"org.opencontainers.image.licenses": "MPL-2.0",
		},
	}
	if img, err = mutate.ConfigFile(img, config); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	tag, err := name.NewTag("nomadish:" + strings.ReplaceAll(r.version, "+", "-"))
	if err != nil {
		return fmt.Errorf("image: %w", err)
	}
	if err := tarball.WriteToFile(r.named(arch, ".image.tar"), tag, img); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	return nil
}

// layer has the program and the directories that an agent needs.
func (r *release) layer(arch string) (v1.Layer, error) {
	program, err := os.ReadFile(r.binary(arch))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	dirs := []struct {
		path string
		mode int64
	}{{"usr/", 0o755}, {"usr/bin/", 0o755}, {"etc/", 0o755}, {"etc/nomadish.d/", 0o750}, {"var/", 0o755}, {"var/lib/", 0o755}, {"var/lib/nomadish/", 0o700}, {"tmp/", 0o1777}}
	for _, d := range dirs {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: d.path, Mode: d.mode, ModTime: r.time}); err != nil {
			return nil, err
		}
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "usr/bin/nomadish", Mode: 0o755, Size: int64(len(program)), ModTime: r.time}); err != nil {
		return nil, err
	}
	if _, err := w.Write(program); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
}
