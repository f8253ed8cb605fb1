job "a" {
  group "g" {
    count = 2
    update {
      canary            = 3
      min_healthy_time  = "10m"
      progress_deadline = "1m"
    }
    reschedule {
      delay     = "1h"
      max_delay = "1m"
      attempts  = 3
      unlimited = true
    }
    disconnect {
      lost_after           = "1m"
      stop_on_client_after = "1m"
    }
    task "t" { driver = "raw_exec" }
  }
}
