jobs "a" {}
job "a" {}
