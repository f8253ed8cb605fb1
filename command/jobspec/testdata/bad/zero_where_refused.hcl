job "a" {
  priority = 0
  group "g" {
    task "t" {
      driver = "raw_exec"
      resources {
        cpu    = 0
        memory = 5
        device "nvidia/gpu" { count = 0 }
      }
      logs { max_files = 0 }
    }
  }
}
