# Two racks of two 8-GPU machines that do not exist, to try topologies and gangs on:
# nomadish agent -dev -simulate examples/racks.hcl
shape "dgx-a" {
  count  = 2
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

shape "dgx-b" {
  count  = 2
  cores  = 128
  mhz    = 2000
  memory = 1048576
  disk   = 2000000
  meta   = { rack = "r2" }

  gpus "nvidia/gpu/H100" {
    count               = 8
    sockets             = 2
    switches_per_socket = 2
    memory              = 81920
  }
}
