# Steps that wait for each other, as by sbatch --dependency=afterok. Try: nomadish workflow run examples/slurm/steps.nomad.hcl
workflow "steps" {
  stage "work" {
    job "prepare" {
      group "g" {
        max_run_duration = "10m"
        restart {
          attempts = 0
        }
        reschedule {
          attempts = 0
        }
        task "t" {
          driver = "raw_exec"
          config {
            command = "/bin/sh"
            args    = ["-c", "echo prepared"]
          }
          resources {
            cpu    = 100
            memory = 50
          }
        }
      }
    }
    job "evaluate" {
      depends_on = ["prepare"]
      group "g" {
        count            = 2
        max_run_duration = "10m"
        restart {
          attempts = 0
        }
        reschedule {
          attempts = 0
        }
        task "t" {
          driver = "raw_exec"
          config {
            command = "/bin/sh"
            args    = ["-c", "echo part $NOMAD_ALLOC_INDEX evaluated"]
          }
          resources {
            cpu    = 100
            memory = 50
          }
        }
      }
    }
  }
}
