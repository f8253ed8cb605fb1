job "a" {
  group "workers" {
    count      = 2
    candidates = ["n1", "n1"]
    gang {
      min    = 3
      groups = ["worker", "workers", "driver"]
    }
    topology {
      pin = "x"
    }
    task "t" { driver = "raw_exec" }
  }
}
