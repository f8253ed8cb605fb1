job "a" {
  type = service
  group "g" {
    task "t" { driver = raw.exec }
  }
}
