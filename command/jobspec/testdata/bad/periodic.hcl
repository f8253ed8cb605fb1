job "a" {
  type = "service"
  periodic {
    cron  = "every day"
    crons = ["* * * * *"]
  }
  parameterized {
    meta_required = ["x"]
    meta_optional = ["x"]
  }
  group "g" {
    task "t" { driver = "raw_exec" }
  }
}
