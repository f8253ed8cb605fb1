job "a" {
  name = uper("x")
  group "g" {
    task "t" { driver = file("/etc/passwd") }
  }
}
