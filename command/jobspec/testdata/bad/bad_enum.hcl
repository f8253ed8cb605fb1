job "a" {
  type    = "servce"
  reclaim = "stop"
  policy  = "best-fit"
  constraint {
    attribute = "${attr.cpu.arch}"
    operator  = "equals"
    value     = "amd64"
  }
  group "g" {
    restart { mode = "never" }
    task "t" {
      driver = "raw_exec"
      lifecycle { hook = "pre_start" }
    }
  }
}
