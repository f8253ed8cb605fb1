job "a" {
  constraint {
    operator = "distinct_hosts"
    value    = "maybe"
  }
  constraint {
    attribute = "${attr.x}"
    operator  = "regexp"
    value     = "("
  }
  constraint {
    attribute = "${attr.x}"
    operator  = "version"
    value     = "abc"
  }
  constraint {
    value = "x"
  }
  affinity {
    attribute = "${attr.x}"
    value     = "y"
    weight    = 101
  }
  group "g" {
    spread {
      target "a" { percent = 60 }
      target "a" { percent = 60 }
    }
    task "t" { driver = "raw_exec" }
  }
}
