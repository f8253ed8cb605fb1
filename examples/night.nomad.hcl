# Work that any more important job may preempt: of the lowest band, and suspended in place instead of stopped where its memory can
# stay. Try with examples/machine.hcl: nomadish job run -detach examples/night.nomad.hcl
job "night" {
  type     = "batch"
  priority = 20
  reclaim  = "suspend" # or "requeue", the default: stopped, and started anew when there is room

  group "crunch" {
    count = 8

    task "pretend" {
      driver = "mock_driver"

      config {
        run_for = "10m"
      }

      resources {
        cpu    = 1000
        memory = 1000
      }
    }
  }
}
