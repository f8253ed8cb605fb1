// Package tracefile reads workload traces and lists of nodes for `sim run`: the
// columns of OpenB (Alibaba) and Philly (Microsoft), and a simple CSV of our own, each
// plain or compressed with gzip. Traces that are sorted by arrival are read row by row
// however long they are; others are sorted in memory up to a stated number of rows.
//
// What cannot be read is refused with file, line, column and what is allowed. The
// package decides nothing: it makes rows and nodes.
package tracefile
