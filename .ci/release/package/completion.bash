# The program completes its own commands and options.
complete -C /usr/bin/nomadish nomadish
