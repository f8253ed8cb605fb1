# A service: nomadish keeps `count` instances of it running, starts them again when
# they fail, and moves them when their node goes away.
job "example" {
  type = "service"

  group "hello" {
    count = 2

    # A port that is free on the node, given to the task as NOMAD_PORT_http.
    network {
      port "http" {}
    }

    restart {
      attempts = 2
      interval = "30m"
      delay    = "15s"
      mode     = "fail"
    }

    task "greet" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "while true; do echo \"hello from $NOMAD_ALLOC_NAME on port $NOMAD_PORT_http\"; sleep 5; done"]
      }

      resources {
        cpu    = 100 # MHz
        memory = 64  # MiB
      }
    }
  }
}
