# The job of stage route of chip.nomad.hcl: a job file as any other, of a type that ends.

variable "dir" {
  default = "/tmp/nomadish-chip"
}

job "route" {
  type = "batch"

  group "route" {
    task "route" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-ec", "sort -n '${var.dir}'/placed.* > '${var.dir}/routed'"]
      }
    }
  }
}
