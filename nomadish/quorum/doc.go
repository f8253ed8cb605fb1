// Package quorum decides which servers form the Raft cluster: who founds it, who is
// added, promoted to a voter, and removed.
//
// # Founding
//
// Servers that are started with bootstrap_expect = N wait until N of them see each
// other by gossip. The one with the least ID then founds the cluster with the N least;
// the others get the configuration from it, by Raft. Two rules keep that from
// happening twice:
//
//   - The founder first has the promise of every server that it founds with: a server
//     promises itself to one founder, and only while it belongs to no cluster. Promises
//     are kept on disk before they are given. They end when the founder takes them back,
//     or has left for good.
//   - Any server in sight that belongs to a cluster already stops all founding: its
//     leader will add the others.
//
// Two sets of N servers that have never seen each other may still found two clusters;
// the leaders then refuse each other's servers.
//
// # Keeping
//
// The leader compares the members of the gossip with Raft's configuration. Who is alive
// and belongs to no other cluster is added as a non-voter; autopilot promotes it
// when it has been healthy for a while. Who left is removed at once, who failed by
// autopilot, as long as a majority and the configured minimum stay.
//
// # What it must never do
//
// It never changes the replicated state, and it never founds a cluster that it was not
// told to found: a server without bootstrap_expect only ever joins.
package quorum
