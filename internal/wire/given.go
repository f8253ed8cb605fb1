package wire

import (
	"reflect"

	"github.com/nomadish/nomadish/internal/codec"
)

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
	raw, err := codec.Encode(from)
	if err != nil {
		return err
	}
	return codec.Decode(raw, to)
}
