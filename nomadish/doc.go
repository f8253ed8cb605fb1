// Package nomadish is the server: it wires Raft, the replicated state, the leader's
// parts and the RPC endpoints together, and starts and stops them.
//
// Only wiring lives here. What a part does is in its own package below this one,
// and no part ever sees *Server: each takes the small interfaces that it declares.
// The server never imports the client; the two meet only on the wire.
//
// Raft as it is wired here, with what a leader runs, is broken in virtual time by
// TestVirtual: the second ring, between package simulation and e2e.
package nomadish
