job "a" {
  group "g" {
    max_run_duration = "2 hours"
    shutdown_delay   = 30
    task "t" {
      driver         = "raw_exec"
      kill_timeout   = "1d"
      shutdown_delay = "-3s"
    }
  }
}
