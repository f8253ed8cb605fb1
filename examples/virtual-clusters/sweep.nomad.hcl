# Thirty-two tasks with one GPU each: as many as the whole cluster has.
job "sweep" {
  namespace = "students"
  type      = "batch"

  group "run" {
    count = 32

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
