// Package codec is how values are written: msgpack, for the log, snapshots, rows on disk and the network, and the frames in
// which they travel, a 4-byte big-endian length and that many bytes.
//
// It must never know a connection, a method or what a value means: whatever replicates state links it, and must not link the
// network.
package codec
