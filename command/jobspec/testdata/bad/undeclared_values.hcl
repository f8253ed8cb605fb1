variable "count" { default = 1 }
locals { total = 3 }
job "a" {
  priority = var.prio
  group "g" {
    count = var.cout
    task "t" { driver = local.totl }
  }
}
