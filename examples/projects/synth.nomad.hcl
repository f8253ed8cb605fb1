# 50 instances of project chip-a, each of one core and 4 GiB, that pretend to run for an hour.
job "synth" {
  type    = "batch"
  project = "chip-a"
  step    = "synthesis"

  group "g" {
    count = 50

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
