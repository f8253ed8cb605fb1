# One task with two GPUs under one PCIe switch, or none at all. Try it on simulated machines: nomadish agent -dev
# -simulate examples/racks.hcl, then nomadish job run -detach examples/gpu.nomad.hcl and nomadish topology. On real ones the driver is
# raw_exec or the like; the task finds its GPUs in NVIDIA_VISIBLE_DEVICES and CUDA_VISIBLE_DEVICES.
job "pair" {
  type   = "batch"
  prefer = ["gpus", "memory"] # compare room by GPUs first; the default is the cluster's order

  group "train" {
    task "step" {
      driver = "mock_driver"

      config {
        run_for = "1h"
      }

      resources {
        cpu    = 4000
        memory = 32768

        device "nvidia/gpu" { # or "gpu", or "nvidia/gpu/H100"
          count = 2

          topology {
            level    = "pcie"
            required = true # without it: as near as can be had
          }
        }
      }
    }
  }
}
