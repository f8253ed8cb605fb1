# Forty instances for the simulated machines. Their driver only pretends to run: it shows where instances are placed.
job "training" {
  type = "batch"

  constraint {
    attribute = "${meta.rack}"
    value     = "r1"
  }

  group "workers" {
    count = 40

    spread {
      attribute = "${node.unique.name}"
    }

    task "pretend" {
      driver = "mock_driver"

      config {
        run_for = "1h"
      }

      resources {
        cpu    = 4000
        memory = 16384
      }
    }
  }
}
