package agent

import (
	"errors"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/command/agent/config"
)

func newServer(*config.Config, hclog.Logger) (*serverPart, error) {
	return nil, errors.New("the server is not wired yet")
}
