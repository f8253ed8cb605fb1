// Package command is the command line: one file a command, each a few calls of the
// HTTP API and a table. It must never reach into a server or client: only package
// agent starts those.
package command
