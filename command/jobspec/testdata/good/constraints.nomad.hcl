# Nomad's short form: the operator's name as an attribute
job "short" {
  constraint {
    distinct_hosts = true
  }
  constraint {
    attribute = "${attr.kernel.version}"
    version   = ">= 5.4, < 7"
  }

  group "g" {
    count = 3

    constraint {
      distinct_property = "${meta.rack}"
      value             = "2"
    }
    constraint {
      attribute = "${attr.kernel.name}"
      regexp    = "^(linux|darwin)$"
    }
    affinity {
      attribute    = "${meta.tags}"
      set_contains = "fast,new"
      weight       = 30
    }

    task "t" {
      driver = "mock_driver"

      constraint {
        attribute = "${attr.nomad.version}"
        semver    = ">= 1.0.0"
      }
    }
  }
}
