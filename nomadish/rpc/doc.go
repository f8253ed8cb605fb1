// Package rpc is the router below the endpoints, which answer the servers' RPC methods. It has a call answered by who may: this
// server, the leader, a server of another region, or the client of a node; and it has what all endpoints do alike: blocking
// queries, the pages and filters of lists, the tables of methods.
//
// It must never see the server, nor an endpoint: it takes the parts that it needs as small interfaces. Endpoints never change
// state but through the Applier, and mint the IDs and times that log entries carry (never later). None imports another.
package rpc
