variable "a" { default = var.b }
variable "b" { default = var.a }
job "a" {}
