# 64 instances of project regress, each of one core and 4 GiB, that pretend to run for an hour.
job "sims" {
  type    = "batch"
  project = "regress"
  step    = "simulate"

  group "g" {
    count = 64

    task "t" {
      driver = "mock_driver"
      config {
        run_for = "1h"
      }
      resources {
        cpu    = 2000
        memory = 4096
      }
    }
  }
}
