locals {
  a = local.b
  b = "x${local.c}"
  c = [local.a]
  d = local.d
}
job "a" {}
