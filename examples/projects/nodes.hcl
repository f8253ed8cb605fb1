# Four simulated nodes without GPUs: each offers its 16 cores as slots of the type batch.
shape "n" {
  count  = 4
  cores  = 16
  mhz    = 2000
  memory = 65536
  disk   = 100000
}
