// Package clientpool is the gossip of a region's clients and servers, by Serf on memberlist: who is there, and who cannot be
// heard any more.
//
// # The problem and its words
//
// The pool is a second prober beside the RPC sessions: a machine that is lost is missed by its neighbours within seconds, and one
// that only cannot be called is still heard. Clients learn from it where servers may be: one address of any member is enough.
//
// A member's name is its ID: a client's node ID, a server's Raft ID. Its tags state its role, its region and, of a server, where
// its RPC listens; they have at most TagBytes. The pool has a port and a key of its own: clients must never have the key of
// the servers' gossip, in which whoever speaks counts as a server.
//
// It is made for thousands of clients: no distances are kept, a member that does not answer is suspected for about a second
// only (whoever acts on that probes again by other ways), queues are bounded, and what is reported about a member is logged once.
//
// # What it must never do
//
// Anybody who has the key can send anything here, in anybody's name. So it decides nothing: a client that calls itself a server has
// no effect on servers, and clients verify a server's certificate (where there is TLS) before they believe it; a member that
// is reported to have failed is probed. It carries no secrets and no state, and knows neither the server's nor the client's parts.
package clientpool
