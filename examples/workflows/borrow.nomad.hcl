# Ten instances that borrow what workflow gold does not use, and go on where they were after they were taken back. See gold.nomad.hcl.
job "borrow" {
  type      = "batch"
  namespace = "interns"
  reclaim   = "suspend" # or "requeue", the default: begin again from the beginning

  group "g" {
    count            = 10
    max_run_duration = "1m"

    task "t" {
      driver = "mock_driver"

      config {
        run_for = "20s"
      }

      resources {
        cores  = 1
        memory = 10
      }
    }
  }
}
