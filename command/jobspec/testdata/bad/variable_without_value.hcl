variable "image" {
  type = string
}
job "a" {}
