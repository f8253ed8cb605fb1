# A flow is a sequence of steps. Several projects may follow it.
flow "example" {
  steps = ["synthesis", "place", "route"]
}

# A project: who works together, and how many slots they have in which week.
project "example" {
  # The members: users, and groups of the servers' user database. Unknown ones are refused, unless `project apply -force` is used.
  users  = ["ada"]
  groups = ["chip"]

  # Users who may change the project and its calendar. Operators may, too.
  managers = ["lead"]

  # The steps are those of the flow. A project may have its own instead: steps = ["simulate"].
  flow = "example"

  # As many jobs at once as the slots allow ("velocity", the default), or as many as complete a number of jobs in a time:
  # objective = "throughput"
  # throughput {
  #   jobs = 3000
  #   per  = "24h"
  # }

  # The slots of a week. The block replaces all that the project has in that week. Weeks up to 104 ahead may be edited.
  # `nomadish project calendar example` shows this one and the next 12.
  # calendar "2026-W48" {
  #   slots {
  #     type  = "batch"
  #     step  = "synthesis"
  #     count = 2
  #   }
  #   slots {
  #     type  = "batch"
  #     group = "chip"
  #     job   = "sim-*"
  #     count = 1
  #   }
  # }
}
