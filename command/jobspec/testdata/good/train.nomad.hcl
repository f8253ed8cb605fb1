# the job of the documentation: everything that is added to Nomad's
variable "gpus" {
  type    = number
  default = 2
  validation {
    condition     = var.gpus > 0
    error_message = "At least one GPU."
  }
}

variable "image" {
  type    = object({ name = string, tags = list(string) })
  default = { name = "base", tags = ["a", "b"] }
}

locals {
  name  = upper(var.image.name)
  twice = "${local.name}-${local.name}"
}

job "train" {
  priority = 60
  project  = "chip-a"
  step     = "synthesis"
  slot     = "batch"
  reclaim  = "requeue"
  partial  = "preempt"
  class    = "auto"
  policy   = "binpack"
  prefer   = ["memory", "cpu"]

  meta = {
    "dotted.key" = 1
    name         = local.twice
  }

  constraint {
    attribute = "${attr.kernel.name}"
    value     = "linux"
  }

  group "workers" {
    count            = 4
    candidates       = ["node-1", "node-7"]
    max_run_duration = "2h"

    gang {
      min     = 4
      groups  = []
      on_loss = "gang"
    }

    topology {
      level    = "rack"
      required = false
    }

    network {
      dynamic "port" {
        for_each = var.image.tags
        labels   = ["port_${port.value}"]
        content {
          to = 8000 + port.key
        }
      }
      port "ssh" {
        static = 2222
      }
    }

    task "t" {
      driver = "exec"
      config {
        command = "/bin/echo"
        args = [
          "${NOMAD_PORT_http}", "$${HOME}", "${HOME}", "${meta.rack} on ${node.unique.id}",
          "${env["HOME"]}", "${upper("x")}", var.gpus, true, 1.5,
        ]
        mount {
          type = "bind"
          dynamic "option" {
            for_each = { ro = true }
            labels   = [option.key]
            content {
              value = option.value
            }
          }
        }
        nested = { deep = [{ er = null }] }
      }
      env {
        PORT  = 8080
        GREET = <<-EOT
          hello ${NOMAD_ALLOC_ID}
            indented
        EOT
      }
      resources {
        cores    = 8
        memory   = 65536
        licenses = { vcs = 1 }
        device "nvidia/gpu" {
          count = var.gpus
          share = 1000
          topology {
            level    = "pcie"
            required = true
            pin      = ""
          }
        }
      }
    }
  }
}
