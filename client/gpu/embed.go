package gpu

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
)

//go:embed bin
var embedded embed.FS

// maxProgram bounds the probe's size in bytes; it has about 2 MiB.
const maxProgram = 64 << 20

// ErrNoProbe reports that the agent was built without its probe.
var ErrNoProbe = errors.New("this agent was built without its GPU probe and sees no GPUs; build it with `make build`")

// Program is the probe that is embedded in this binary.
func Program() ([]byte, error) {
	packed, err := embedded.ReadFile("bin/probe.gz")
	if err != nil {
		return nil, ErrNoProbe
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack the GPU probe: %w", err)
	}
	program, err := io.ReadAll(io.LimitReader(z, maxProgram))
	if err != nil {
		return nil, fmt.Errorf("unpack the GPU probe: %w", err)
	}
	return program, nil
}
