region     = "eu"
datacenter = "dc2"
name       = "n1"
data_dir   = "/var/lib/nomadish"
bind_addr  = "127.0.0.1"
log_level  = "warn"
log_json   = true

ports {
  http = 14646
  rpc  = 0
}

addresses {
  http = "127.0.0.1 ::1"
}

advertise {
  http = "10.0.0.1"
  rpc  = "10.0.0.1:14647"
}

http_api_response_headers {
  X-Frame-Options = "deny"
}

server {
  enabled            = true
  bootstrap_expect   = 3
  num_schedulers     = 0
  enabled_schedulers = ["service", "batch"]
  job_gc_threshold   = "1h30m"
  job_max_source_size = "1M"

  default_scheduler_config {
    scheduler_algorithm = "spread"
    preemption_config {
      batch_scheduler_enabled = true
    }
  }

  topology {
    levels = ["gpu", "pcie", "socket", "node", "rack"]
    level "rack" {
      meta = "rack"
    }
  }

  scheduling {
    policy            = "least-fragmentation"
    dimensions        = ["gpus", "cpu", "memory"]
    granularity       = { cpu = 500, memory = 1024 }
    bands             = [[1, 40], [41, 70], [71, 100]]
    keep_whole        = true
    reservation_after = "5m"
    reservation_ttl   = "1h"
    preferred_cells   = [2, 8]
    grace             = "90s"
    allocated_bonus   = 50
    requeue_bonus     = 5
    max_requeues      = 0
    suspend_limit     = "2h"
    light             = 0.5
    cycle             = "30s"
    aging             = 0
    preemption {
      service_scheduler_enabled = true
    }
    slot "batch" {
      cores  = 2
      memory = 4096
    }
    slot "gpu" {
      gpus  = 1
      kind  = "H100"
      grace = "0s"
    }
  }

  calendar {
    time_zone   = "Europe/Berlin"
    week_starts = "mon 06:00"
  }
}

client {
  enabled         = true
  servers         = ["10.0.0.1:4647"]
  node_class      = "big"
  simulate        = "shapes.hcl"
  simulate_beside = true
  meta {
    rack = "r1"
    "a.b" = 5
  }
  slots {
    batch             = 16
    interactive-light = 8
  }
  options = {
    "driver.raw_exec.enable" = "1"
  }
  reserved {
    cpu            = 500
    reserved_ports = "22,8500-8600"
  }
  host_volume "scratch" {
    path      = "/scratch"
    read_only = true
  }
}

plugin "raw_exec" {
  config {
    enabled = true
  }
}

plugin "docker" {
  config {
    list = [1, "two", { three = null }]
  }
}

limits {
  http_max_conns_per_client = 7
  http_body_timeout = "45s"
}

http_config {
  allowed_hosts   = ["nomad.example.com"]
  trusted_origins = ["https://dash.example.com"]
}

telemetry {
  prometheus_metrics = true
  prefix_filter      = ["+nomad.http", "-nomad.raft"]
}

log_file = "/var/log/nomadish"
vault {
  enabled = true
}
