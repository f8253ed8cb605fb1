job "a" {
  update {}
  update {}
  meta { x = 1 }
  meta { y = 1 }
  group "g" {
    volume "v" {
      type   = "host"
      source = "x"
    }
    volume "v" {
      type   = "host"
      source = "y"
    }
    task "t" { driver = "raw_exec" }
  }
}
