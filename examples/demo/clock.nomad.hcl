# A service of one real process on this machine, with a port that nobody else gets. It runs until it is stopped:
# `nomadish job stop clock`.
job "clock" {
  type = "service"

  group "clock" {
    network {
      port "http" {}
    }

    task "tick" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "while :; do echo \"$(date +%T) process $$ has port $NOMAD_PORT_http\"; sleep 2; done"]
      }

      resources {
        cpu    = 50
        memory = 32
      }
    }
  }
}
