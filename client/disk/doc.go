// Package disk watches the room on the disks that a node's allocations and its state live on. It says what is so; the
// client reports to servers and tasks.
package disk
