# Runs to its end, three times over if it fails. Try: nomadish job run examples/batch.nomad.hcl
job "hello" {
  type = "batch"

  group "hello" {
    restart {
      attempts = 2
      interval = "1m"
      delay    = "1s"
      mode     = "fail"
    }

    task "say" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "echo hello from $NOMAD_TASK_NAME in $NOMAD_ALLOC_DIR"]
      }

      env {
        LANG = "C"
      }
    }
  }
}
