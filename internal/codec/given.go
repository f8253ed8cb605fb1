package codec

// Given is an argument or an answer, V a pointer to it, that is given away: whoever gets it within the same process has it as it
// is, what it points to included, instead of a copy that went through the codec. Nobody who has seen it before may change it any
// more, and if others may still read it, neither may who gets it. To another process it is V.
type Given struct{ V any }
