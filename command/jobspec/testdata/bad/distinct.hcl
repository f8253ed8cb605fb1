job "d" {
  group "g" {
    distinct_hosts = true

    constraint {
      operator          = "!="
      distinct_property = "${meta.rack}"
    }

    constraint {
      attribute = "${attr.os.version}"
      version   = ">= 22.04"
      value     = "22.04"
    }

    constraint {
      attribute      = "${attr.kernel.name}"
      distinct_hosts = true
      regexp         = "linux"
    }

    affinity {
      distinct_hosts = true
    }

    task "t" {
      driver = "mock_driver"

      constraint {
        version = ["1"]
      }
    }
  }
}
