job "a" {
  gruop "g" {}
  group "g" {
    tasks "t" {}
    networks {}
    wibble {}
  }
}
