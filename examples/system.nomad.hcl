# One instance on every node that has the driver, also on nodes that join later.
job "watch" {
  type = "system"

  constraint {
    attribute = "${attr.kernel.name}"
    value     = "linux"
  }

  group "watch" {
    task "load" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "while :; do cut -d' ' -f1-3 /proc/loadavg; sleep 10; done"]
      }
    }
  }
}
