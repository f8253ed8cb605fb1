job "a" {
  priority    = "high"
  datacenters = "dc1"
  all_at_once = "perhaps"
  meta        = ["x"]
  group "g" {
    count = [1]
    task "t" {
      driver       = { x = 1 }
      kill_timeout = true
    }
  }
}
