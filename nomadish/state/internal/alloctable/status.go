package alloctable

import "github.com/nomadish/nomadish/structs"

// status is an allocation's status as a number; see statusNames.
type status uint8

// otherStatus is a status without a number: a newer version's, or none. The row's
// notes have its name.
const otherStatus status = 255

var statusNames = []string{
	structs.AllocDesiredRun, structs.AllocDesiredStop, structs.AllocDesiredEvict,
	structs.AllocClientPending, structs.AllocClientRunning, structs.AllocClientComplete,
	structs.AllocClientFailed, structs.AllocClientLost, structs.AllocClientUnknown,
	structs.AllocDesiredSuspend, structs.AllocClientSuspended,
}

func statusOf(name string) status {
	for i, n := range statusNames {
		if n == name {
			return status(i) // a few
		}
	}
	return otherStatus
}
