job "a" {
  group "g" {
    task "t" {
      driver = "raw_exec"
      resources {
        cpu        = 100
        cores      = 2
        memory     = 500
        memory_max = 100
        licenses   = { vcs = 0 }
        device "a/b/c/d" {}
        device "nvidia/gpu" {
          count = 2
          share = 500
        }
        numa { affinity = "require" }
      }
    }
  }
}
