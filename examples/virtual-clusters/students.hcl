# The namespace students owns one socket with its 4 GPUs, and may use whatever else is idle.
virtual_cluster "students" {
  cells {
    level = "socket"
    count = 1
  }
}
