// Package sim describes simulated nodes: the shapes of a file and the nodes that
// they stand for, with their cores, memory and GPUs in their places. It makes
// values only; the client adds their heartbeats and tasks.
package sim
