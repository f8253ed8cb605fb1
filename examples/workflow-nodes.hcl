# Machines for `sim generate` and `sim run` with workflows: 4 of 64 cores.
shape "cpu" {
  count  = 4
  cores  = 64
  mhz    = 1000
  memory = 262144
}
