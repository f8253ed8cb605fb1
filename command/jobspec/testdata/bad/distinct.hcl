job "d" {
  group "g" {
    distinct_hosts = true

    constraint {
      distinct_hosts = true
    }

    task "t" {
      driver = "mock_driver"

      constraint {
        distinct_property = "${meta.rack}"
      }
    }
  }
}
