// Package walls keeps the house in shape: it reads the source of the whole module and reports every place that breaks
// one of the walls of ARCHITECTURE.md.
//
// A linter sees the direct imports of one file. Most walls are about more: what a package reaches through others, which
// package calls the clock, which one holds the writer of the state. So the guards here work on a Tree: the import graph
// of the module with its syntax and types, loaded once. A guard is a function from a Tree to the breaches that it sees,
// which makes the guards testable as well: a test adds a file that breaks a wall to the Tree and requires the breach to be reported.
//
// The package must never import another package of the module, and never change a file.
package walls
