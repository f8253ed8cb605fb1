# One small simulated machine, which is soon full. Try: nomadish agent -dev -simulate examples/machine.hcl
shape "machine" {
  cores  = 8
  mhz    = 1000  # per core
  memory = 16000 # MiB
}
