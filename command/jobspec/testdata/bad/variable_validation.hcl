variable "count" {
  default = 3
  validation {
    condition     = var.count > 5
    error_message = "More than five are needed."
  }
}
job "a" {}
