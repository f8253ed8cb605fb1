// Package ui prints what the command line shows: tables, key-value lists, colours
// and live progress. It must never fetch anything: it is given what it shows.
package ui
