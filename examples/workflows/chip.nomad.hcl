# Five stages that pass their files on through a directory. Try: nomadish workflow run examples/workflows/chip.nomad.hcl
#
# The directory must be the same on every node that runs the stages, such as a network file system. A development agent is one node.

variable "dir" {
  default = "/tmp/nomadish-chip"
}

variable "seconds" {
  description = "how long each step takes, as nothing is computed here"
  default     = "0"
}

workflow "chip" {
  priority   = 70
  reserve    = "max"
  on_failure = "stop"

  stage "rtl" {
    job "generate" {
      group "generate" {
        task "generate" {
          driver = "raw_exec"
          config {
            command = "/bin/sh"
            args    = ["-ec", "mkdir -p '${var.dir}'; sleep ${var.seconds}; seq 1 60 > '${var.dir}/netlist'"]
          }
        }
      }
    }
  }

  # Two jobs side by side, each with half of the netlist.
  stage "synthesis" {
    job "low" {
      group "low" {
        max_run_duration = "10m"
        task "low" {
          driver = "raw_exec"
          config {
            command = "/bin/sh"
            args    = ["-ec", "sleep ${var.seconds}; head -n 30 '${var.dir}/netlist' > '${var.dir}/cells.low'"]
          }
        }
      }
    }
    job "high" {
      retries = 2
      group "high" {
        max_run_duration = "10m"
        task "high" {
          driver = "raw_exec"
          config {
            command = "/bin/sh"
            args    = ["-ec", "sleep ${var.seconds}; tail -n 30 '${var.dir}/netlist' > '${var.dir}/cells.high'"]
          }
        }
      }
    }
  }

  # Three instances of one job: each places a third of the cells.
  stage "place" {
    job "place" {
      group "place" {
        count = 3
        task "place" {
          driver = "raw_exec"
          config {
            command = "/bin/sh"
            args    = ["-ec", "sleep ${var.seconds}; cat '${var.dir}/cells.low' '${var.dir}/cells.high' | awk -v i=$NOMAD_ALLOC_INDEX 'NR % 3 == i' > '${var.dir}/placed'.$NOMAD_ALLOC_INDEX"]
          }
        }
      }
    }
  }

  # A job from a file of its own.
  stage "route" {
    job_file = "route.nomad.hcl"
  }

  stage "signoff" {
    job "signoff" {
      group "signoff" {
        task "signoff" {
          driver = "raw_exec"
          config {
            command = "/bin/sh"
            args = ["-ec", join("; ", [
              "sleep ${var.seconds}",
              "echo \"$NOMADISH_WORKFLOW run $NOMADISH_WORKFLOW_RUN stage $NOMADISH_WORKFLOW_STAGE attempt $NOMADISH_WORKFLOW_ATTEMPT: $(wc -l < '${var.dir}/routed') cells, sum $(awk '{ n += $1 } END { print n }' '${var.dir}/routed')\" > '${var.dir}/report'",
              "cat '${var.dir}/report'",
            ])]
          }
        }
      }
    }
  }
}
