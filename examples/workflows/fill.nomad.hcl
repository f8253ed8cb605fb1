# A job that uses 7 of the 8 cores of examples/machine.hcl for an hour at most. See build.nomad.hcl.
job "fill" {
  type = "batch"

  group "g" {
    max_run_duration = "1h"

    task "t" {
      driver = "mock_driver"

      config {
        run_for = "2h"
      }

      resources {
        cores = 7
      }
    }
  }
}
