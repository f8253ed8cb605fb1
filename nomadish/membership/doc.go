// Package membership is which servers there are, in the region and in others, and which of them are the cluster's.
//
// It puts together what its two parts decide nothing of each other about: package gossip knows who is there, package quorum forms
// the cluster and decides who becomes a voter. Here a server takes its place in the gossip of its region (LAN) and of all
// regions (WAN), finds others there (PoolOptions), is kept out of Raft until it belongs to a cluster (RaftGate), and shows the
// servers of Raft's configuration with what gossip knows of them (RaftServers): removing one, transferring leadership to it, and
// whether all can read a type of log entries. Regions is who serves the other regions. Keyrings changes the keys of these gossips
// on all members.
package membership
