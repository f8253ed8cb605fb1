# Four machines that do not exist: the agent pretends to be them, so that there is a cluster to look at.
shape "dgx" {
  count  = 4
  cores  = 128
  mhz    = 2000    # per core
  memory = 1048576 # MiB
  disk   = 2000000 # MiB
  meta   = { rack = "r1" }

  gpus "nvidia/gpu/H100" {
    count               = 8
    sockets             = 2
    switches_per_socket = 2
    memory              = 81920 # MiB each
  }
}
