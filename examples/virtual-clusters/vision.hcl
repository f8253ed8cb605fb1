# The namespace vision owns two whole nodes. What it runs beyond them uses whatever is idle, and may be stopped for an owner.
virtual_cluster "vision" {
  over_limit = "opportunistic"

  cells {
    level = "node"
    count = 2
  }
}
