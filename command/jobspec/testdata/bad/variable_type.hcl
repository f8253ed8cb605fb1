variable "count" {
  type    = number
  default = "many"
}
variable "list" {
  type = lst(string)
}
variable "x" {
  typo = string
}
variable "x" {}
job "a" {}
