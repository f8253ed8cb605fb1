// Package workflow is the arithmetic of a workflow's reservation: how much is reserved and on which nodes, what of it may be
// lent to whom and for how long, and which borrowers are stopped when a stage needs it.
//
// # Problem
//
// A workflow is stages in order. It reserves once, before the first stage, what its stages need, on as few nodes as possible, so
// that no stage ever waits for anybody else. What the running stage does not need is lent. When a stage starts, just enough is
// taken back, fairly among those to whom it was lent.
//
// # Words
//
// An [Instance] is one allocation that a stage needs. A [Part] is what the reservation has of one node. A lend is one block
// `lend` of the workflow's file, a group of borrowers with a share; it is known by its index in the file. A [Borrower] is an
// allocation of others that runs in a part. What is at hand is what no borrower and no instance of the workflow uses.
//
// # How
//
//   - [Reserve.Amounts] returns how much is reserved: per resource the largest stage, the sum of the stages, or stated numbers.
//   - [Pack] chooses the parts; [Packs] reports whether a stage can run in given ones; [Reserve.Check] refuses stated numbers
//     that the stages do not pack into.
//   - [PackGangs] and [TakeBackGangs] do so for stages of which some instances have to be in one rack or on one node,
//     or on distinct nodes or racks ([Distinct]). [Gangs.Impossible] and [Gangs.Crowded] report what cannot be packed in any way,
//     and [Gangs.Alone] is for what can, but not all at the same time.
//   - [Due] and [Shares] divide what is lent; [TimeLeft] and [Terms.MayBorrow] are the time rule.
//   - [TakeBack] places a stage into the parts and names the borrowers that have to leave.
//
// # Invariants
//
// The tests prove them against plain oracles:
//
//   - every stage packs into the parts of a [Packing] that misses nothing; no part is above what its node had free, and the
//     parts are at least the stated amount, per resource;
//   - shares are whole, and their sum is what was divided;
//   - all instances of a stage fit into the parts once the victims have left, and none of the victims could stay beside them;
//     nobody has to leave if the stage fits into what is at hand.
//
// # Complexity
//
// For i instances, n nodes, p parts and b borrowers in a part: Pack O(i × p), and O(n) for each part that is opened; TakeBack
// O(i × p × b) for each borrower of a part that leaves for an instance. 5 stages of 200 instances on 1,000 nodes are packed in about
// 10 ms, and a stage of 200 takes back from 60 parts of 8 borrowers in about 6 ms. Where most is missing an instance costs O(n): 1,000 on
// 1,000 nodes take about 40 ms. PackGangs is as Pack, in one order after the other if need be: 5 stages of 200 gangs of four in 50 racks
// take about 15 ms.
//
// Packing is first fit decreasing, which is not always the best. Where it enlarges a reservation, the result states by how much.
//
// # Example
//
// Stages of one core an instance need 2, 6, 6 and 8. Reserved are 8; lent by stage 6, 2, 2, 0; taken back at the start of each
// 0, 4, 0, 2. Where two groups with the shares 1 : 1 had borrowed 4 each and 4 are needed, each loses 2; without shares the
// first loses 4.
//
// # Never
//
// This package knows no jobs, nodes or namespaces: nodes, lends and instances are indexes. It has no state, looks at no clock and
// does not panic on input. Whether a borrower is stopped or suspended, and when, is decided elsewhere.
//
// Source: docs/design/semantics.md, part 5.
package workflow
