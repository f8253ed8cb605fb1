package structs

// sparse is the type of a field that has of a struct only those fields encoded that have a value (structs/wire; the codec knows
// the field by its name, _struct). A field is written with its name, and of what users declare most say nothing: a job in the
// log has half its size, and is read in half the time. An empty list or map comes back as none: both mean the same wherever
// values are compared.
type sparse struct{}
