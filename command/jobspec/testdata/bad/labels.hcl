job "a" {
  group {
    task "t" { driver = "raw_exec" }
  }
  group "g" "h" {}
  update "x" {}
  meta "x" {}
  group "" {}
}
