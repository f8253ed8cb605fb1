// Package week counts calendar weeks: ISO 8601 weeks in one time zone, which may begin at another day and hour than Monday 00:00
// (docs/design/semantics.md, part 4). It reads no clock. Time zones come from the program's own copy of the database where the machine has
// none; a Calendar must not be used where replicas have to agree, as their databases may differ.
package week
