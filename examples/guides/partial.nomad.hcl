# A gang that starts with two of its four members, in one rack. Try with examples/racks.hcl: nomadish job run -detach examples/guides/partial.nomad.hcl
job "partial" {
  type  = "batch"
  class = "opportunistic" # runs on what idles, whatever its namespace owns

  group "workers" {
    count            = 4
    max_run_duration = "1h"

    gang {
      min = 2
    }

    topology {
      level    = "rack"
      required = true
    }

    task "step" {
      driver = "mock_driver"

      config {
        run_for = "1h"
      }

      resources {
        cpu    = 1000
        memory = 1000

        device "nvidia/gpu/H100" {
          count = 8
        }
      }
    }
  }
}
