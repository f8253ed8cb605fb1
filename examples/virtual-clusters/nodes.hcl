# Four machines with 8 GPUs each that do not exist, for docs/guides/virtual-clusters.md:
# nomadish agent -dev -simulate examples/virtual-clusters/nodes.hcl
shape "dgx" {
  count  = 4
  cores  = 128
  mhz    = 2000    # per core
  memory = 1048576 # MiB
  disk   = 2000000 # MiB

  gpus "nvidia/gpu/H100" {
    count               = 8
    sockets             = 2
    switches_per_socket = 2
    memory              = 81920 # MiB each
  }
}
