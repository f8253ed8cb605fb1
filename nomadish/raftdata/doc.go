// Package raftdata reads the Raft log and the snapshots of a server that does not run, straight from its data directory, and
// rebuilds from them the state that the server would come back with.
//
// It must never change a file. The log is opened read-only and locked as readers lock it: a server that runs has it locked for
// itself, so that it cannot be read then, and a server cannot be started while it is read.
package raftdata
