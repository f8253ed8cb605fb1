package agent

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/command/agent/config"
)

func TestGPUOptions(t *testing.T) {
	f := func(plugin string, block map[string]any, want, wantErr string) {
		t.Helper()
		cfg := &config.Config{Plugins: map[string]*config.Plugin{plugin: {Config: block}}}
		o, off, err := gpuOptions(cfg)
		if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%s %v: error %v, want %q", plugin, block, err, wantErr)
		}
		if got := fmt.Sprint(o.Interval, o.Ignored, off); err == nil && got != want {
			t.Errorf("%s %v: %s, want %s", plugin, block, got, want)
		}
	}
	f("raw_exec", map[string]any{"enabled": false}, "0s [] false", "")
	f("nomad-device-nvidia", nil, "0s [] false", "")
	f("nomad-device-nvidia", map[string]any{"enabled": false}, "0s [] true", "")
	f("nomad-device-nvidia", map[string]any{"enabled": true, "fingerprint_period": "1m", "ignored_gpu_ids": []any{"GPU-a", "MIG-b"}}, "1m0s [GPU-a MIG-b] false", "")
	f("nvidia-gpu", map[string]any{"fingerprint_period": "1s"}, "1s [] false", "")
	f("nvidia-gpu", map[string]any{"fingerprint_period": "1ms"}, "", "at least 1s")
	f("nvidia-gpu", map[string]any{"fingerprint_period": "soon"}, "", "fingerprint_period soon")
	f("nvidia-gpu", map[string]any{"fingerprint_period": 5}, "", "fingerprint_period 5")
	f("nvidia-gpu", map[string]any{"ignored_gpu_ids": []any{7}}, "", "nvidia-smi -L")
	f("nvidia-gpu", map[string]any{"ignored_gpu_ids": "GPU-a"}, "", "write a list")
	f("nvidia-gpu", map[string]any{"enabled": "no"}, "", "true or false")
	f("nvidia-gpu", map[string]any{"enable": true}, "", "enable is not known; known are enabled")
}
