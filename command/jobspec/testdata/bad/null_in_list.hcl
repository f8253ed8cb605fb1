job "a" {
  datacenters = ["x", null]
  group "g" {
    candidates = [["x"]]
    task "t" { driver = "raw_exec" }
  }
}
