package driver

import "context"

// Finder is a Driver that can find a started task by the ID that it was started
// under (TaskConfig.ID), without the state of its handle. An agent that dies between
// a start and writing the handle's state down needs it: without a Finder it starts
// the task a second time.
type Finder interface {
	// Find is Recover by ID. ErrTaskNotFound: no task was started under that ID.
	Find(ctx context.Context, id string) (Handle, error)
}
