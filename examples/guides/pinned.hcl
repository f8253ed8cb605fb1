# The namespace vision owns two sockets, one of them by its name. What it requests beyond them waits.
virtual_cluster "vision" {
  over_limit = "wait"

  cells {
    level = "socket"
    count = 2
    pin   = ["dgx-a-0/socket-0"]
  }
}
