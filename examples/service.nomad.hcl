# Two instances that are kept running, with a port each. The count is a variable:
# nomadish job run -var count=4 examples/service.nomad.hcl
variable "count" {
  type    = number
  default = 2
}

job "web" {
  type = "service"

  update {
    max_parallel = 1
  }

  group "web" {
    count = var.count

    network {
      port "http" {}
    }

    reschedule {
      delay          = "5s"
      delay_function = "exponential"
      max_delay      = "1m"
      unlimited      = true
    }

    task "serve" {
      driver       = "raw_exec"
      kill_timeout = "2s"

      config {
        command = "/bin/sh"
        args    = ["-c", "trap 'echo bye; exit 0' TERM; echo would serve on $NOMAD_ADDR_http; while :; do sleep 1; done"]
      }

      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}
