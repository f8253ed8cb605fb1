# The same job as train.sh, of which it reads the script. Try, after `nomadish license apply -count 10 vcs`:
# nomadish job run examples/slurm/train.nomad.hcl
job "train" {
  type = "batch"

  group "part" {
    count            = 4
    max_run_duration = "10m"

    # As with Slurm, a part that fails is not tried again. Without these two blocks it is.
    restart {
      attempts = 0
    }
    reschedule {
      attempts  = 0
      unlimited = false
    }

    task "train" {
      driver = "raw_exec"

      config {
        command = "/bin/bash"
        args    = ["-c", file("train.sh")]
      }

      resources {
        cores    = 1
        memory   = 200
        licenses = { vcs = 1 }
      }
    }
  }
}
