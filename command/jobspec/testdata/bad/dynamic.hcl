job "a" {
  dynamic "group" {
    for_each = 3
    content {}
  }
  dynamic "group" {
    content {}
  }
  dynamic "group" {
    for_each = ["x"]
    foreach  = 1
  }
  dynamic "group" {
    for_each = ["x"]
    labels   = "x"
    content {}
  }
  dynamic {
    content {}
  }
}
