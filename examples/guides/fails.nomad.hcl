# A task that fails at once: docs/guides/troubleshooting.md
job "fails" {
  type = "batch"

  group "t" {
    restart {
      attempts = 0
    }

    reschedule {
      attempts  = 0
      unlimited = false
    }

    task "t" {
      driver = "mock_driver"

      config {
        run_for   = "1ms"
        exit_code = 1
      }

      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}
