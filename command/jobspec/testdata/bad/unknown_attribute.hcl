job "a" {
  priorty = 3
  group "g" {
    task "t" {
      driver  = "raw_exec"
      command = "x"
      resources { ram = 3 }
    }
  }
}
