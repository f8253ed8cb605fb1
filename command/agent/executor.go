package agent

import (
	"context"
	"io"

	"github.com/nomadish/nomadish/client/executor"
)

// Executor is the hidden command that keeps a client's tasks while the agent is
// away. The process must do nothing else; the result is the exit code.
func Executor(ctx context.Context, args []string, stderr io.Writer) int {
	return executor.Main(ctx, args, &logLines{to: stderr})
}
