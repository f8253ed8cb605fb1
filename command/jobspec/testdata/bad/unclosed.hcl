job "a" {
  group "g" {
