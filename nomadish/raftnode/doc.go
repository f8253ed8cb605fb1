// Package raftnode is a server's Raft: its log and snapshots on disk or in memory, a transport that admits members only, who leads,
// the transfer of leadership, and the recovery of a cluster by peers.json. Raft itself is hashicorp/raft; what a log entry means,
// package fsm knows, and who is a member, whoever opens a Node.
package raftnode
