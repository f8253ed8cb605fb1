# Two stages of 4 cores with time limits, so that it is known when each starts. Try, with an agent of `nomadish agent -dev -simulate examples/machine.hcl`:
# nomadish job run -detach examples/workflows/fill.nomad.hcl
# nomadish workflow plan examples/workflows/build.nomad.hcl
workflow "build" {
  stage "make" {
    job "make" {
      group "g" {
        max_run_duration = "10m"

        task "t" {
          driver = "mock_driver"

          config {
            run_for = "1m"
          }

          resources {
            cores = 4
          }
        }
      }
    }
  }

  stage "test" {
    job "test" {
      group "g" {
        max_run_duration = "20m"

        task "t" {
          driver = "mock_driver"

          config {
            run_for = "1m"
          }

          resources {
            cores = 4
          }
        }
      }
    }
  }
}
