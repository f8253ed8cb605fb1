# A batch job of real processes: it runs on this machine, prints something and ends.
job "report" {
  type = "batch"

  group "lines" {
    count = 3

    task "print" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "echo \"line $NOMAD_ALLOC_INDEX of job $NOMAD_JOB_NAME, printed by process $$ on $(uname -n)\""]
      }

      resources {
        cpu    = 50
        memory = 32
      }
    }
  }
}
