job "a" {
  name     = format("%d", "x")
  priority = parseint("zz", 10)
  group "g" {
    meta {
      a = format("%99999999d", 1)
      b = base64decode("*")
      c = join(",", setproduct(range(1000), range(1000)))
    }
    task "t" { driver = "raw_exec" }
  }
}
