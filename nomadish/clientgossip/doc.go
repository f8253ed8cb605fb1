// Package clientgossip is a server's part in the gossip of a region's clients: who of them is heard, and with which keys.
//
// The servers are members of one pool with all clients that gossip. Whether the pool has a client as a member is one of two
// probes of it, its sessions being the other; the leader's heartbeats use both before a client counts as lost (Probers). A server that loses
// sessions to clients notifies the leader of them, whoever that is.
//
// Anybody with the clients' key may take part, so that nothing in the pool is believed of servers: which there are is known from the servers'
// own gossip. The keys (Keys) are changed on all servers by a query through that gossip, and come to clients with the answers to
// their heartbeats.
package clientgossip
