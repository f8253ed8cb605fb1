job "a" {
  priorty = 3
  max_run_duration = "1h"
  cpu = 100
  group "g" {
    task "t" {
      driver  = "raw_exec"
      command = "x"
      resources { ram = 3 }
    }
  }
}
