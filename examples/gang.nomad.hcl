# A gang: its members are placed together or not at all. Two members with 8 GPUs each in one rack; with four, no rack of two
# machines is enough, and the gang waits: nomadish job run -var members=4 examples/gang.nomad.hcl
variable "members" {
  type    = number
  default = 2
}

job "gang" {
  type = "batch"

  group "workers" {
    count = var.members

    gang {
      on_loss = "gang" # when a member is lost all start anew; "member": it alone
    }

    topology { # of all members together
      level    = "rack"
      required = true
    }

    network {
      port "rendezvous" {}
    }

    task "train" {
      driver = "mock_driver"

      # Each member knows its place and its peers before it starts: NOMADISH_GANG_RANK, _SIZE and _HOSTS.
      config {
        run_for = "1h"
      }

      resources {
        cpu    = 16000
        memory = 131072

        device "nvidia/gpu" {
          count = 8
        }
      }
    }
  }
}
