job "a" {
  type = "batch"
  update {}
  migrate {}
  group "g" {
    reschedule {
      attempts = 3
      interval = "0s"
    }
    restart {
      attempts = 10
      delay    = "1m"
      interval = "5m"
    }
    task "t" { driver = "raw_exec" }
  }
}
