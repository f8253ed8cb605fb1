variable "count" { default = 1 }
locals { total = 3 }
job "a" {
  group "g" {
    count = var.cout
    task "t" { driver = local.totl }
    meta { x = local.total.y, z = vars.count }
  }
}
