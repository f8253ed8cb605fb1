# Machines for `sim run`, and for `sim nodes`: 4 with 8 GPUs each, 2 without.
shape "gpu" {
  count  = 4
  cores  = 64
  mhz    = 1000
  memory = 524288
  gpus "nvidia/gpu/A100" {
    count               = 8
    sockets             = 2
    switches_per_socket = 2
  }
}

shape "cpu" {
  count  = 2
  cores  = 64
  mhz    = 1000
  memory = 262144
}
