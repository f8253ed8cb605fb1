job "a" {
  type    = "system"
  reclaim = "suspend"
  group "g" {
    task "t" {
      driver = "raw_exec"
      config { command = "/bin/true" }
    }
  }
}
