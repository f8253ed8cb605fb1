# A virtual cluster: what the namespace of the same name owns. Its jobs get these cells at once, whoever else uses them.
virtual_cluster "example" {
  # What happens to instances beyond what the namespace owns: they run on what is idle and may be stopped at any time
  # ("opportunistic", the default), they wait ("wait"), or their job is refused until it is registered with -opportunistic ("ask").
  over_limit = "opportunistic"

  # One whole node and one socket of another. `nomadish topology` shows which levels and kinds there are.
  cells {
    level = "node"
    count = 1
  }
  cells {
    level = "socket"
    count = 1
  }

  # For two weeks it owns two nodes instead of one. The socket stays.
  # window {
  #   from = "2026-12-01T00:00:00Z"
  #   to   = "2026-12-15T00:00:00Z"
  #   cells {
  #     level = "node"
  #     count = 2
  #   }
  # }
}
