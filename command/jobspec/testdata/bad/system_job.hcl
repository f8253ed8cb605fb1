job "a" {
  type = "system"
  affinity {
    attribute = "${attr.x}"
    value     = "y"
  }
  group "g" {
    count = 3
    reschedule { attempts = 1 }
    gang {}
    task "t" { driver = "raw_exec" }
  }
}
