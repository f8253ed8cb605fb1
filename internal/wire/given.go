package wire

import "reflect"

// Given is an argument or an answer, V a pointer to it, that is given away: whoever gets it within the same process has it as it
// is, what it points to included, instead of a copy that went through the codec. Nobody who has seen it before may change it any
// more, and if others may still read it, neither may who gets it. To another process it is V.
type Given struct{ V any }

// assign sets what to points to from a pointer to a value of the same type; false: it is of another.
func assign(to, from any) bool {
	dst, src := reflect.ValueOf(to), reflect.ValueOf(from)
	if dst.Kind() != reflect.Pointer || dst.Type() != src.Type() || dst.IsNil() || src.IsNil() {
		return false
	}
	dst.Elem().Set(src.Elem())
	return true
}

// copyTo is assign to whatever can be decoded from the value's encoding.
func copyTo(to, from any) error {
	raw, err := Encode(from)
	if err != nil {
		return err
	}
	return Decode(raw, to)
}
