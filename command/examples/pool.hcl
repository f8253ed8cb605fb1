# A node pool: a set of nodes that jobs choose with node_pool = "example". A node is in
# the pool that client { node_pool = "example" } in its agent's configuration names.
node_pool "example" {
  # What people are shown of it, in at most 256 characters.
  description = "Example node pool"

  # Names and values of your own. They change nothing of what the scheduler does.
  meta {
    environment = "prod"
    owner       = "sre"
  }
}
