# Two projects of docs/guides/projects.md. Their slots are edited with `nomadish project calendar`. The users are made up: `nomadish project
# apply -force` accepts them.

flow "chip" {
  steps = ["synthesis", "place", "route"]
}

project "chip-a" {
  users    = ["ada"]
  groups   = ["chip"]
  managers = ["lead"]
  flow     = "chip"
}

project "regress" {
  users     = ["bob", "eve"]
  steps     = ["simulate"]
  objective = "throughput"
  throughput {
    jobs = 3000
    per  = "24h"
  }
}
