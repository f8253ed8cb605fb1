//go:build cgo

package gpu

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// fakeDriver compiles a library that plays an NVIDIA driver with GPUs (which needs a
// C compiler, as all that is built with cgo) and has agents find it. play says what
// it plays from then on. env is what an agent finds it by.
func fakeDriver(t *testing.T) (env string, play func(text string)) {
	t.Helper()
	dir := t.TempDir()
	control := filepath.Join(dir, "control")
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	compile := exec.Command(cc, "-shared", "-fPIC", "-o", filepath.Join(dir, "libnvidia-ml.so.1"), "-DCONTROL=\""+control+"\"",
		"../../client/gpu/testdata/fakenvml/nvml.c")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("a C compiler is needed: %v\n%s", err, out)
	}
	return "LD_LIBRARY_PATH=" + dir, func(text string) {
		t.Helper()
		if err := os.WriteFile(control, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestGPUs: the binary finds GPUs through the driver's library, gives tasks just
// theirs, and tells of one that turns bad and well again within seconds. A binary
// that was built without its probe says how to get it.
func TestGPUs(t *testing.T) {
	t.Parallel()
	env, play := fakeDriver(t)
	a := harness.NewAgent(t, true, "")
	a.Env = []string{env}
	a.Start()
	a.WaitReady(1)
	if _, err := os.Stat("../../client/gpu/bin/probe.gz"); err != nil {
		harness.Within(t, 10*time.Second, "a word about the probe", func(context.Context) error {
			if !strings.Contains(a.Log.Tail(1000), "build it with `make build`") {
				return fmt.Errorf("none in the log")
			}
			return nil
		})
		return
	}
	nodes, _, err := a.API.Nodes().List(t.Context(), nil)
	if err != nil || len(nodes) != 1 {
		t.Fatalf("nodes %v: %v", nodes, err)
	}
	state := func(limit time.Duration, want string) {
		t.Helper()
		harness.Within(t, limit, want, func(ctx context.Context) error {
			node, _, err := a.API.Nodes().Info(ctx, nodes[0].ID, nil)
			if err != nil {
				return err
			}
			var got []string
			for _, d := range node.NodeResources.Devices {
				for _, one := range d.Instances {
					word := fmt.Sprintf("%s/%s %s", d.Type, d.Name, one.ID)
					if !one.Healthy {
						word += " bad"
					}
					got = append(got, word)
				}
			}
			if text := strings.Join(got, "; "); text != want {
				return fmt.Errorf("the node has %s", text)
			}
			return node.NodeResources.ValidateTopology()
		})
	}
	const whole, cut = "gpu/NVIDIA H100 80GB HBM3 GPU-fake-0; gpu/NVIDIA H100 80GB HBM3 GPU-fake-1", "; mig/1c.3g.40gb MIG-fake-2-3; mig/1g.10gb MIG-fake-2-0"
	state(time.Second, whole+cut)

	out, code := a.CLI("job", "run", a.JobFile("see", `job "see" {
  type = "batch"
  group "g" {
    task "two" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "echo sees $CUDA_VISIBLE_DEVICES and $NVIDIA_VISIBLE_DEVICES"]
      }
      resources {
        device "nvidia/gpu" { count = 2 }
      }
    }
    task "none" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "echo sees [$CUDA_VISIBLE_DEVICES] and $NVIDIA_VISIBLE_DEVICES"]
      }
    }
  }
}`))
	if code != 0 {
		t.Fatalf("job run: exit %d\n%s", code, out)
	}
	alloc := a.WaitInStatus("see", structs.AllocClientComplete, 1, 10*time.Second)[0]
	for task, want := range map[string]string{
		"two": "sees GPU-fake-0,GPU-fake-1 and GPU-fake-0,GPU-fake-1", "none": "sees [] and void",
	} {
		if out, code := a.CLI("alloc", "logs", alloc.ID, task); code != 0 || !strings.Contains(out, want) {
			t.Errorf("task %s: exit %d, %q; want %q", task, code, out, want)
		}
	}

	play("ecc 1\n")
	state(10*time.Second, whole+" bad"+cut)
	play("crash 1\n")
	state(20*time.Second, strings.ReplaceAll(whole+cut, ";", " bad;")+" bad")
	play("")
	state(10*time.Second, whole+cut)
}
