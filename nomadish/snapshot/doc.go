// Package snapshot is the archive that `operator snapshot save` writes: a file that holds
// a cluster's whole state and can be checked before anything is done with it.
//
// An archive is a compressed tar of meta.json, state.bin (as package fsm writes it) and
// SHA256SUMS, in this order, which every tar reads. Behind it is an empty gzip member whose
// comment is the SHA-256 of all before it, so that no flipped bit passes, not even in what
// gzip does not look at.
//
// [Write] and [Read] stream: their memory does not grow with the state. Read checks
// everything: both checksums, the names and sizes of the parts, and each row of the state,
// as a restore that fails half way would be the end of a server. [Spool] keeps the files
// that a server needs for a while. The package knows nothing of Raft or of the network.
package snapshot
