# Work of the highest band: where preemption is on for batch jobs, it takes the place of lower bands.
# Try with examples/machine.hcl: nomadish job run -detach examples/urgent.nomad.hcl
job "urgent" {
  type     = "batch"
  priority = 90
  partial  = "preempt" # if not all of it fits, take all it can; or "free": touch nobody, or "none": nothing or all

  group "crunch" {
    count = 3

    task "pretend" {
      driver = "mock_driver"

      config {
        run_for = "1m"
      }

      resources {
        cpu    = 1000
        memory = 1000
      }
    }
  }
}
