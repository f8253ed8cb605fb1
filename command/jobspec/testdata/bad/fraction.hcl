job "a" {
  group "g" {
    count = 1.5
    task "t" {
      driver = "raw_exec"
      resources { cpu = 1e30 }
    }
  }
}
