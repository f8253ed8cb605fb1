job "a" {
  group "g" {
    network {
      mode = "brige"
      port "http" { static = 80 }
      port "http2" { static = 80 }
      port "x y" {}
      port "http" {}
      dns { servers = ["nowhere"] }
    }
    service {
      port     = "htp"
      provider = "nomad"
      check {
        type     = "script"
        interval = "1ms"
      }
    }
    service {
      name = "x"
      task = "u"
    }
    task "t" { driver = "raw_exec" }
  }
}
