package agent

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nomadish/nomadish/client/gpu"
	"github.com/nomadish/nomadish/command/agent/config"
)

// gpuPlugins are the names under which Nomad configures NVIDIA devices, newest first.
var gpuPlugins = []string{"nomad-device-nvidia", "nvidia-gpu"}

// minGPUPeriod is the shortest time between two looks at the GPUs.
const minGPUPeriod = time.Second

// gpuOptions reads how GPUs are watched from the block that Nomad configures its
// device plugin with. off: they are not looked for.
func gpuOptions(cfg *config.Config) (o gpu.Options, off bool, err error) {
	for _, name := range gpuPlugins {
		p := cfg.Plugins[name]
		if p == nil {
			continue
		}
		var errs []error
		for _, key := range slices.Sorted(maps.Keys(p.Config)) {
			if err := gpuOption(&o, &off, key, p.Config[key]); err != nil {
				errs = append(errs, fmt.Errorf("plugin %q: %w", name, err))
			}
		}
		return o, off, errors.Join(errs...)
	}
	return o, false, nil
}

// gpuOption reads one line of the block.
func gpuOption(o *gpu.Options, off *bool, key string, v any) (err error) {
	switch key {
	case "enabled":
		on, ok := v.(bool)
		if !ok {
			return fmt.Errorf("enabled %v: write true or false", v)
		}
		*off = !on
	case "fingerprint_period":
		text, _ := v.(string)
		if o.Interval, err = time.ParseDuration(text); err != nil || o.Interval < minGPUPeriod {
			return fmt.Errorf("fingerprint_period %v: write a duration of at least %v, such as \"5s\"", v, minGPUPeriod)
		}
	case "ignored_gpu_ids":
		ids, ok := v.([]any)
		for _, one := range ids {
			id, text := one.(string)
			ok = ok && text
			o.Ignored = append(o.Ignored, id)
		}
		if !ok {
			return fmt.Errorf("ignored_gpu_ids %v: write a list of UUIDs as `nvidia-smi -L` shows them", v)
		}
	default:
		return fmt.Errorf("%s is not known; known are enabled, fingerprint_period and ignored_gpu_ids", key)
	}
	return nil
}
