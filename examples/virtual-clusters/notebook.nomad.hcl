# One task with 2 GPUs under one PCIe switch.
job "notebook" {
  namespace = "vision"
  type      = "batch"

  group "w" {
    task "shell" {
      driver = "mock_driver"

      config {
        run_for = "1h"
      }

      resources {
        cpu    = 2000
        memory = 16384

        device "nvidia/gpu" {
          count = 2
        }
      }
    }
  }
}
