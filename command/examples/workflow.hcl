# Three stages, one after the other, that pass a file on. Try: nomadish workflow run workflow.nomad.hcl
variable "dir" {
  description = "where the stages pass their files on: every node that runs them must have it"
  default     = "/tmp/nomadish-workflow"
}

workflow "numbers" {
  on_failure = "stop" # or "continue", "retry-stage"

  stage "make" {
    job "make" {
      group "make" {
        task "make" {
          driver = "raw_exec"
          config {
            command = "/bin/sh"
            args    = ["-ec", "mkdir -p '${var.dir}'; seq 100 > '${var.dir}/numbers'"]
          }
        }
      }
    }
  }

  stage "compute" { # both jobs run side by side
    job "sum" {
      retries = 2 # the whole job is run again if it fails
      group "sum" {
        task "sum" {
          driver = "raw_exec"
          config {
            command = "/bin/sh"
            args    = ["-ec", "awk '{ n += $1 } END { print n }' '${var.dir}/numbers' > '${var.dir}/sum'"]
          }
        }
      }
    }
    job "largest" {
      group "largest" {
        task "largest" {
          driver = "raw_exec"
          config {
            command = "/bin/sh"
            args    = ["-ec", "sort -n '${var.dir}/numbers' | tail -n 1 > '${var.dir}/largest'"]
          }
        }
      }
    }
  }

  stage "report" {
    job "report" {
      group "report" {
        task "report" {
          driver = "raw_exec"
          config {
            command = "/bin/sh"
            args    = ["-ec", "echo \"run $NOMADISH_WORKFLOW_RUN of $NOMADISH_WORKFLOW: sum $(cat '${var.dir}/sum'), largest $(cat '${var.dir}/largest')\""]
          }
        }
      }
    }
  }
}
