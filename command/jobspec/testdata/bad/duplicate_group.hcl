job "a" {
  group "g" {
    task "t" { driver = "raw_exec" }
    task "t" { driver = "raw_exec" }
  }
  group "g" {
    task "t" { driver = "raw_exec" }
  }
}
