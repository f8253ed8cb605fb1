# One machine that is server and client, with its state on disk. Try: nomadish agent -config examples/agent.hcl
# Its addresses are loopback only. To be reached by others, set bind_addr = "0.0.0.0", TLS and the keys of gossip (docs/guides/tls.md); or, on a
# network that nobody else can use, bind_addr and insecure = true.
name      = "one"
data_dir  = "/var/lib/nomadish"
bind_addr = "127.0.0.1"
log_level = "INFO"

server {
  enabled          = true
  bootstrap_expect = 1
}

client {
  enabled           = true
  servers           = ["127.0.0.1:4647"]
  network_interface = "lo" # whose address tasks get; leave it out for the machine's own
}

# raw_exec runs processes as the agent's own user unless a task names another, with nothing between them and the machine: it is
# off by default. client { users { denied = ["root"] } } refuses tasks of root (docs/guides/clients.md).
plugin "raw_exec" {
  config {
    enabled = true
  }
}
