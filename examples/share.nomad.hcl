# Four instances that take a quarter of a GPU each: they fill one before another is begun.
job "share" {
  type = "service"

  group "infer" {
    count = 4

    task "serve" {
      driver = "mock_driver"

      config {
        run_for = "24h"
      }

      resources {
        cpu    = 500
        memory = 2048

        device "nvidia/gpu" {
          share = 250 # thousandths of one GPU
        }
      }
    }
  }
}
