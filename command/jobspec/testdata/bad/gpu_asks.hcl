job "a" {
  prefer = ["memory", "gpu"]
  group "g" {
    count = 2
    gang {
      min     = 3
      groups  = ["h"]
      on_loss = "member"
    }
    topology {
      level = "rack"
    }
    task "t" {
      driver = "raw_exec"
      resources {
        device "gpu" {
          share = 500
          count = 2
        }
        device "nvidia//H100" {}
        device "nvidia/mig" {
          count = 2
          topology {
            level    = "mig"
            required = true
          }
        }
        device "nvidia/gpu" {
          topology {
            required = true
          }
        }
      }
    }
  }
  group "h" {
    gang {}
    topology {
      level    = "rack"
      required = true
      pin      = "x"
    }
    task "t" {
      driver = "raw_exec"
    }
  }
}
