# Stages of 2, 6 and 8 cores that reserve 8 and lend what idles. Try, with an agent of `nomadish agent -dev -simulate examples/machine.hcl`:
# nomadish namespace apply interns
# nomadish workflow run -detach examples/workflows/gold.nomad.hcl
# nomadish job run -detach examples/workflows/borrow.nomad.hcl
# nomadish workflow status -watch gold

variable "seconds" {
  description = "how long each stage takes"
  default     = "15"
}

workflow "gold" {
  reserve = "max"

  lend {
    to = "namespace:interns"
  }

  stage "a" {
    job "a1" {
      group "g" {
        max_run_duration = "2m" # who borrows must end before this
        task "t" {
          driver = "mock_driver"
          config {
            run_for = "${var.seconds}s"
          }
          resources {
            cores  = 2
            memory = 100
          }
        }
      }
    }
  }

  stage "b" {
    job "b1" {
      group "g" {
        max_run_duration = "2m"
        task "t" {
          driver = "mock_driver"
          config {
            run_for = "${var.seconds}s"
          }
          resources {
            cores  = 6
            memory = 100
          }
        }
      }
    }
  }

  stage "c" {
    job "c1" {
      group "g" {
        max_run_duration = "2m"
        task "t" {
          driver = "mock_driver"
          config {
            run_for = "${var.seconds}s"
          }
          resources {
            cores  = 8
            memory = 100
          }
        }
      }
    }
  }
}
