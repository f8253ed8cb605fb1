job "a" {
  update = { max_parallel = 1 }
  priority { value = 3 }
  group "g" {
    task "t" { driver = "raw_exec" }
  }
}
