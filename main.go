// Command nomadish is the server, the client and the command line in one binary.
// It must never hold more than the call of package command.
package main

import (
	"os"

	"github.com/nomadish/nomadish/command"
)

func main() { os.Exit(command.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
