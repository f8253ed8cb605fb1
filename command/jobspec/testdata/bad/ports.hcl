job "a" {
  group "g" {
    network {
      mode = "brige"
      port "http" { static = 80 }
      port "http2" { static = 80 }
      port "x y" {}
      port "a" { static = 70000 }
      dns { servers = ["nowhere"] }
    }
    task "t" { driver = "raw_exec" }
  }
}
