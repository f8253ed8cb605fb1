package structs

// sparse is the type of a field that has of a struct only those fields written that have a value, in log entries and calls
// (internal/wire; the codec knows the field by its name, _struct, and what it states by the tag entry). A field is written with its
// name, and of what users declare most are empty: a job in the log has half its size, and is read in half the time. An empty
// list or map comes back as none: both mean the same wherever values are compared. In snapshots it does not count: a row must
// come back as it was, as the hash of the state distinguishes none from empty.
type sparse struct{}
