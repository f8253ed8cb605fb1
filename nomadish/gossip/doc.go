// Package gossip is how servers find each other: who is there, at which address, and
// who has failed or left, by Serf on memberlist.
//
// # The problem and its words
//
// A pool is a set of servers that gossip with each other over UDP and TCP on one port.
// One address of any of them is enough to join; each then learns of all. The servers
// of a region share a LAN pool. Pools across regions are slower and meant for the far
// distance (KindWAN); they take servers of any region, while a LAN pool refuses a server
// of another: two regions whose operators mistype an address must not merge.
// A server publishes in the LAN pool its address in the WAN pool, so that the others
// of its region bring each other along: one of them that knows another region is enough.
//
// What a server states about itself stands in its tags: role, region, datacenter, the ID
// that Raft knows it by, its RPC address, how many servers it expects to bootstrap the
// cluster with, and versions. Members are returned as they are now; whoever acts on them
// subscribes to changes and looks at all of them anew, so that a lost notice costs
// nothing.
//
// # What it must never do
//
// Gossip decides nothing: it neither bootstraps a cluster nor changes Raft's configuration;
// those who do only read it. It carries no secrets and no state of the cluster. It must
// never be mixed with the clients' gossip: a pool has a key of its own.
package gossip
