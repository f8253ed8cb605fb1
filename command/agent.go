package command

import (
	"context"
	"io"

	"github.com/nomadish/nomadish/command/agent"
)

// agentSpec hands everything to the agent, which reads its flags itself.
func agentSpec() spec {
	return spec{
		synopsis: "Run a server, a client, or both", example: "-dev",
		help: agent.Usage, raw: func(ctx context.Context, args []string, out, err io.Writer) int {
			return agent.Run(ctx, args, out, err)
		},
	}
}

// executorSpec is the command by which a client starts its executor; users do not call it.
func executorSpec() spec {
	return spec{
		synopsis: "Run a node's tasks, for the agent", example: "-dir /var/lib/nomadish/executor",
		help: "Usage: nomadish executor [options]\n\n  Runs a node's tasks and keeps their output while the agent restarts. The agent starts this process.\n",
		raw: func(ctx context.Context, args []string, _, err io.Writer) int {
			return agent.Executor(ctx, args, err)
		},
	}
}
