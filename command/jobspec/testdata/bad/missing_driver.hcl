job "a" {
  group "g" {
    task "t" {}
  }
  group "empty" {}
}
