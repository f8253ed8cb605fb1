# One task with a whole node of 8 GPUs.
job "train" {
  namespace = "vision"
  type      = "batch"

  group "w" {
    task "step" {
      driver = "mock_driver"

      config {
        run_for = "1h"
      }

      resources {
        cpu    = 4000
        memory = 32768

        device "nvidia/gpu" {
          count = 8
        }
      }
    }
  }
}
