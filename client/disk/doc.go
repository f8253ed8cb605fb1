// Package disk watches the room on the disks that a node's allocations and its state live on. It reports what it finds; the
// client reports to servers and tasks. It stands apart as it has a goroutine and a lock of its own.
package disk
