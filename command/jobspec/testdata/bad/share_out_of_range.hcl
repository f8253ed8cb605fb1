job "a" {
  group "g" {
    task "t" {
      driver = "raw_exec"
      resources {
        device "gpu" {
          share = 0
        }
        device "nvidia/gpu" {
          share = 1001
        }
        device "nvidia/gpu/H100" {
          share = -1
        }
        device "nvidia/gpu/H100/x" {
          share = 1.5
        }
      }
    }
  }
}
