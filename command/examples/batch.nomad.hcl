# A batch job: every instance runs to completion once.
job "hello" {
  type = "batch"

  group "work" {
    count = 3

    task "step" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "echo \"instance $NOMAD_ALLOC_INDEX of $NOMAD_JOB_NAME\"; sleep 0.1; echo done"]
      }

      resources {
        cpu    = 100 # MHz
        memory = 64  # MiB
      }
    }
  }
}
