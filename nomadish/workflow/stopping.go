package workflow

import "errors"

// errStopping reports that instances of jobs of a workflow that were stopped have not ended yet.
var errStopping = errors.New("instances of earlier jobs of the workflow are being stopped")
