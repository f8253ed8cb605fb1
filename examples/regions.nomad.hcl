# One job in two regions: two instances in west, one in east, each region with a copy of its own. docs/guides/regions.md describes how two
# regions are started on one machine. Try: nomadish job run -detach examples/regions.nomad.hcl, then nomadish job status web
job "web" {
  type = "service"

  multiregion {
    region "west" {
      count       = 2
      datacenters = ["dc1"]
    }

    region "east" {
      count       = 1
      datacenters = ["dc1"]

      meta {
        tier = "spare"
      }
    }
  }

  group "web" {
    count = 0 # set by the region's block

    task "serve" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "echo would serve in $NOMAD_REGION; exec sleep 100000"]
      }

      resources {
        cpu    = 50
        memory = 32
      }
    }
  }
}
