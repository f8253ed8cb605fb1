job "a" {
  group "g" {
    task "t" {
      driver = "raw_exec"
      env {
        A = ["x"]
        nested { x = 1 }
      }
      env = { "A=B" = 1 }
    }
  }
}
