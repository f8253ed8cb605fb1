# Ten floating licenses of a simulator: nomadish license apply examples/guides/licenses.hcl
license "vcs" {
  count       = 10
  description = "Simulator"
}
