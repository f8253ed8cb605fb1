job "a" {
  group "g" {
    name = "h"
    task "t" { driver = "raw_exec" }
  }
}
