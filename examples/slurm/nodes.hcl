# Two simulated nodes with 4 GPUs each, for docs/guides/from-slurm.md. Beside the machine of the agent:
# nomadish agent -dev -simulate examples/slurm/nodes.hcl -simulate-beside
shape "gpu" {
  count  = 2
  cores  = 8
  mhz    = 1000
  memory = 16000
  disk   = 100000
  meta   = { feature = "fast" }
  gpus "nvidia/gpu/H100" {
    count = 4
  }
}
