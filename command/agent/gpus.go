package agent

import (
	"fmt"
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
		if on, ok := p.Config["enabled"].(bool); ok && !on {
			return gpu.Options{}, true, nil
		}
		if v, ok := p.Config["fingerprint_period"]; ok {
			text, _ := v.(string)
			if o.Interval, err = time.ParseDuration(text); err != nil || o.Interval < minGPUPeriod {
				return gpu.Options{}, false, fmt.Errorf("plugin %q: fingerprint_period %v: write a duration of at least %v, such as \"5s\"", name, v, minGPUPeriod)
			}
		}
		ids, _ := p.Config["ignored_gpu_ids"].([]any)
		for _, v := range ids {
			id, ok := v.(string)
			if !ok {
				return gpu.Options{}, false, fmt.Errorf("plugin %q: ignored_gpu_ids: %v is no text; write UUIDs as `nvidia-smi -L` shows them", name, v)
			}
			o.Ignored = append(o.Ignored, id)
		}
		return o, false, nil
	}
	return o, false, nil
}
