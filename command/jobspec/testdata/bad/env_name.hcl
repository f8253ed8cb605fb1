job "a" {
  group "g" {
    task "t" {
      driver = "raw_exec"
      env    = { "A=B" = 1 }
    }
  }
}
