# A node pool for the machines with GPUs: nomadish node pool apply examples/guides/gpu-pool.hcl
node_pool "gpu" {
  description = "Machines with H100"

  meta {
    owner = "sre"
  }
}
