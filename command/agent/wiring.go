package agent

import (
	"errors"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/command/agent/config"
)

// realParts are those of the command.
func realParts() parts {
	return parts{server: newServer, client: newClient, remote: newRemote}
}

func newServer(*config.Config, hclog.Logger) (*serverPart, error) {
	return nil, errors.New("the server is not wired yet")
}

func newClient(*config.Config, clientDirs, []string, string, hclog.Logger) (*clientPart, error) {
	return nil, errors.New("the client is not wired yet")
}
