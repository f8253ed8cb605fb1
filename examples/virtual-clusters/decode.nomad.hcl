# Twelve tasks with one GPU each. The namespace speech owns 8 GPUs, and is asked before more are used.
job "decode" {
  namespace = "speech"
  type      = "batch"

  group "run" {
    count = 12

    task "step" {
      driver = "mock_driver"

      config {
        run_for = "1h"
      }

      resources {
        cpu    = 1000
        memory = 8192

        device "nvidia/gpu" {
          count = 1
        }
      }
    }
  }
}
