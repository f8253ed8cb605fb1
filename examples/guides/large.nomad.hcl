# A task that fits on no node of examples/racks.hcl: docs/guides/troubleshooting.md
job "large" {
  type = "batch"

  group "g" {
    task "t" {
      driver = "mock_driver"

      config {
        run_for = "1h"
      }

      resources {
        cpu    = 100
        memory = 64

        device "nvidia/gpu" {
          count = 9
        }
      }
    }
  }
}
