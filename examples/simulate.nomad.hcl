# Twelve instances that use a license each. Try, after `nomadish license apply -count 10 vcs`: nomadish job run -detach examples/simulate.nomad.hcl
job "simulate" {
  type = "batch"

  group "run" {
    count = 12

    task "simulate" {
      driver = "raw_exec"

      config {
        command = "/bin/sleep"
        args    = ["30"]
      }

      resources {
        cpu      = 10
        memory   = 10
        licenses = { vcs = 1 }
      }
    }
  }
}
