job "a" {
  group "g" {
    count = 9
    scaling {
      min = 3
      max = 5
    }
    task "t" {
      driver = "raw_exec"
      scaling "cpu" { min = 4 }
    }
  }
}
