job {
  group "g" {}
}
