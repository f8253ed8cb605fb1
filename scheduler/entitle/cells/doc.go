// Package cells keeps count of the cells that tenants of a cluster own, so that each always gets what it owns.
//
// # Problem
//
// A tenant owns cells: "four nodes and a socket", of nodes that are alike. Nobody says which nodes. While it does not use
// them, others run there. Which cells its first job gets must leave enough for everything that the others own, and as much
// as possible of what runs must be left alone.
//
// # Words
//
// A [Chain] is the nodes whose trees of devices are equal. A cell is the devices under one vertex of such a tree, or the nodes
// of a site cell (a rack, a pod). Its [Kind] is its level and, of site cells, the number of its nodes. Cells of one kind are
// interchangeable. A quota is how many cells of a kind an owner was given; a cell is bound while its owner uses it, or
// because it is pinned. A cell is free if it is complete (its nodes are ready and its devices are healthy), it is not bound, and
// nothing in it nor around it is bound. What uses a cell without a right to it (opportunistic use) leaves it free. A free
// cell is maximal if it lies in no other free one. Quota cells that the hardware cannot hold at present are doomed.
//
// # Invariant S
//
// For each kind k, F[k] is the number of maximal free cells, N[k] the number of quota cells that are neither bound nor
// doomed. From the largest kind down, left[k] = F[k] + sum of parts(p, k) × left[p] − N[k], over the kinds p that
// dissolve into cells of kind k. All that is owned can be embedded into what is free if and only if no left[k] is
// negative. [Edit.Candidates] offers only cells whose binding keeps it so; [Edit.Short] says what an admission would lack.
// Cells are doomed when hardware is lost, and computed anew after every change from nothing that is remembered:
// quota cells are added in the order of their admission while S holds; those that do not fit are doomed.
//
// [Chain.Check] proves that the counts agree with a sweep over all nodes.
//
// # Complexity
//
// For n nodes, K kinds (about five, and one for each size of rack): binding and releasing a cell O(log n + K), or the size of
// the site cell where one begins or ceases to be free; the best candidate O(K² + log n), each further one O(log n).
// A snapshot ([Edit.Chain]) is O(1). Doomed cells cost O(K²) for each quota, and only while there are some.
//
// # Example
//
// Two racks of two nodes of 2 sockets × 2 switches × 2 GPUs. A owns 1 node, B 2 sockets, C a rack of 2 nodes:
// left is 1 rack, 0 + 2 × 1 − 1 = 1 node… and 0 + 2 × 1 − 2 = 0 sockets below it. B binds a socket: that breaks a rack, a node:
// racks 1 − 1 = 0, nodes 1 − 1 = 0, sockets 1 − 1 = 0. B's second socket can only be the other one of that node: any other
// would break a node that A or C needs.
//
// # Never
//
// This package knows no namespaces, jobs or allocations: owners are names. It asks neither clock nor chance, takes no lock and does
// not panic on input. Which of an owner's instances gets a cell is decided elsewhere.
//
// Source: semantics part 2, "Virtual clusters"; the invariant is that of HiveD (OSDI 2020), with site cells of several sizes.
package cells
