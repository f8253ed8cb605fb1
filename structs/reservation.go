package structs

// Reservation keeps room on a node for one instance of a request that has waited too long
// (semantics part 1, "Reservations"). A node has at most one. It binds others, not the request that
// holds it, and ends when the request is placed or not wanted any more, or at ExpiresAt.
type Reservation struct {
	NodeID    string
	Namespace string
	JobID     string
	Group     string

	CPU      int64 // MHz
	MemoryMB int64
	DiskMB   int64
	Cores    int // whole cores
	Devices  int // whole devices

	MadeAt    int64 // Unix nanoseconds
	DueAt     int64 // Unix nanoseconds: when room comes, by time limits
	ExpiresAt int64 // Unix nanoseconds

	CreateIndex uint64
}
