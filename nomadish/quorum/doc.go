// Package quorum decides which servers form the Raft cluster: who bootstraps it, who is
// added, promoted to a voter, and removed.
//
// # Bootstrap
//
// Servers that are started with bootstrap_expect = N wait until N of them see each
// other by gossip. The one with the least ID then bootstraps the cluster with the N least;
// the others get the configuration from it, by Raft. Two rules keep that from
// happening twice:
//
//   - The bootstrapper first has the vote of every server that it bootstraps with: a server
//     votes for one bootstrapper, and only while it belongs to no cluster. Votes
//     are on disk before they are cast. They end when the bootstrapper releases them,
//     or has left for good.
//   - Any server in sight that belongs to a cluster already stops all bootstraps: its
//     leader will add the others.
//
// Two sets of N servers that have never seen each other may still form two clusters;
// the leaders then refuse each other's servers.
//
// # Reconciling peers
//
// The leader compares the members of the gossip with Raft's configuration. Who is alive
// and belongs to no other cluster is added as a non-voter; autopilot promotes it
// when it has been healthy for a while. Who left is removed at once, who failed by
// autopilot, as long as a majority and the configured minimum stay.
//
// # What it must never do
//
// It never changes the replicated state, and it never bootstraps a cluster unless it is
// configured to: a server without bootstrap_expect only ever joins.
package quorum
