job "a b" {
  namespace   = "x/y"
  node_pool   = "p!"
  datacenters = ["", "dc1"]
  step        = "x"
  prefer      = ["cpu", "cpu", "a b"]
  group "a/b" {
    task ".." { driver = "raw_exec" }
  }
}
