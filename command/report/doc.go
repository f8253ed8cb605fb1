// Package report writes what replays of a trace found: figures as JSON and CSV, and one
// HTML page with tables and plots that needs nothing from anywhere else. The same
// figures give the same bytes: nothing of the machine or the moment gets in. It decides
// nothing and runs nothing.
package report
