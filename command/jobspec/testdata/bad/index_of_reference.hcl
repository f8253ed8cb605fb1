variable "k" { default = "x" }
job "a" {
  meta { x = "${meta[var.k]}" }
  group "g" {
    task "t" { driver = "raw_exec" }
  }
}
