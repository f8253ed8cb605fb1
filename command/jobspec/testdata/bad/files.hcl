job "a" {
  group "g" {
    task "t" {
      driver      = "raw_exec"
      kill_signal = "int"
      artifact { destination = "../../etc" }
      template {
        data        = "x"
        source      = "y"
        destination = "../../x"
        perms       = "999"
        change_mode = "script"
      }
      volume_mount {
        volume = "v"
      }
      dispatch_payload { file = "../../../x" }
      logs {
        max_files     = 100
        max_file_size = 100
      }
    }
  }
}
