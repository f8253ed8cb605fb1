# The namespace speech owns one node. A job that needs more is refused, until it is registered with -opportunistic.
virtual_cluster "speech" {
  over_limit = "ask"

  cells {
    level = "node"
    count = 1
  }
}
