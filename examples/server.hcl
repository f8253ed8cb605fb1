# A server with settings of the scheduler and of the topology above nodes. Try: nomadish agent -config examples/server.hcl
# Both blocks only seed a new cluster; from then on `operator scheduler set-config` changes them.
name      = "server-1"
data_dir  = "/var/lib/nomadish"
bind_addr = "127.0.0.1"

server {
  enabled          = true
  bootstrap_expect = 1

  topology {
    # Lowest first. Those up to "node" come from what nodes report; those after it are the site's.
    levels = ["gpu", "pcie", "socket", "node", "rack", "pod"]

    level "rack" {
      meta = "rack" # nodes with equal meta.rack share a cell; so it is by default, too
    }

    level "pod" {
      meta = "pod"
    }
  }

  scheduling {
    policy            = "least-fragmentation"        # or binpack, spread, first-fit, next-fit, random
    dimensions        = ["gpus", "cpu", "memory"]    # the order in which room is compared
    granularity       = { cpu = 500, memory = 1024 } # and its steps, in MHz and MiB
    preferred_cells   = [8, 2]                       # sizes in GPUs whose free cells are cut before larger ones
    reservation_after = "5m"                         # a request that waits longer makes a reservation, see docs/guides/topology.md; "-1s": never
    reservation_ttl   = "1h"                         # a reservation ends then at the latest

    # Who may take from whom, and who goes first, see docs/guides/preemption-and-queue.md.
    bands      = [[1, 40], [41, 70], [71, 100]] # a job takes from lower bands only
    keep_whole = false                          # true: of what is taken, whole jobs get their resources back first
    cycle      = "20s"                          # one more of effective priority for each that a job waits
    aging      = 1                              # 0: waiting adds nothing

    preemption { # or, as in Nomad, default_scheduler_config { preemption_config { … } }
      system_scheduler_enabled   = true # so it is anyway
      batch_scheduler_enabled    = true
      service_scheduler_enabled  = true
      sysbatch_scheduler_enabled = false
    }
  }
}
