package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/nomadish/nomadish/client/gpu/nvml"
)

// paths are where the library is looked for: where the loader looks, then where
// distributions, containers and virtual machines have it.
var paths = []string{
	"libnvidia-ml.so.1", "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
	"/usr/lib64/libnvidia-ml.so.1", "/usr/local/nvidia/lib64/libnvidia-ml.so.1", "/run/opengl-driver/lib/libnvidia-ml.so.1",
	"/usr/lib/wsl/lib/libnvidia-ml.so.1",
}

// lastWords is how long an answer may take once nobody requests one any more.
const lastWords = 10 * time.Second

func main() {
	_ = os.WriteFile("/proc/self/comm", []byte("nomadish-gpus"), 0) // what ps shows; a memory file has no name
	look := paths
	if len(os.Args) > 1 {
		look = os.Args[1:]
	}
	lines := make(chan struct{})
	go func() {
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			lines <- struct{}{}
		}
		close(lines)
		// Ends the program after its input also where the driver keeps a call for ever.
		time.Sleep(lastWords)
		os.Exit(1)
	}()
	if err := serve(look, lines, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve answers each line with a snapshot, until one reports that nothing can be read.
func serve(paths []string, lines <-chan struct{}, out io.Writer) error {
	var r *reader
	answers := json.NewEncoder(out)
	for range lines {
		s := nvml.Snapshot{Protocol: nvml.Protocol}
		if r == nil {
			var absent bool
			var err error
			if r, absent, err = begin(paths); err != nil {
				s.Error, s.Absent = err.Error(), absent
			}
		}
		if r != nil {
			s = r.look()
		}
		if err := answers.Encode(s); err != nil {
			return fmt.Errorf("answer: %w", err)
		}
		if s.Error != "" || s.Absent {
			return nil // the next look is at a library that is loaded anew
		}
	}
	return nil
}

// begin loads the library and prepares it. absent: there is no driver.
func begin(paths []string) (r *reader, absent bool, err error) {
	lib, err := open(paths)
	if err != nil {
		return nil, errors.Is(err, errNoLibrary), err
	}
	r = &reader{lib: lib}
	switch res := r.start(); res {
	case success:
		return r, false, nil
	case driverNotLoaded, libraryNotFound, notFound:
		return nil, true, fmt.Errorf("the NVIDIA driver: %w", res)
	default:
		return nil, false, fmt.Errorf("the NVIDIA driver does not start: %s", strings.TrimSpace(res.Error()))
	}
}
