// Package fingerprint finds out what a node is and has: processors, memory, disk,
// network, kernel, and which drivers work. Attributes carry Nomad's names, and what
// is different on every node begins with "unique.", so that it does not split the
// classes of nodes.
//
// It only looks; it must never change the machine. What cannot be found out is left
// out with a warning, never a reason not to start.
package fingerprint
