package structs

import (
	"math"
	"reflect"
)

// deepCopy returns a copy of v that shares nothing with it.
func deepCopy(v reflect.Value) reflect.Value {
	// the others hold nothing of interest here.
	//exhaustive:ignore
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(deepCopy(v.Elem()))
		return out
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		return deepCopy(v.Elem())
	case reflect.Struct:
		out := reflect.New(v.Type()).Elem()
		out.Set(v)
		for i := range v.NumField() {
			if out.Field(i).CanSet() {
				out.Field(i).Set(deepCopy(v.Field(i)))
			}
		}
		return out
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(deepCopy(v.Index(i)))
		}
		return out
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeMapWithSize(v.Type(), v.Len())
		for it := v.MapRange(); it.Next(); {
			value := deepCopy(it.Value())
			if !value.IsValid() || (value.Kind() == reflect.Interface && value.IsNil()) {
				value = reflect.Zero(v.Type().Elem())
			}
			out.SetMapIndex(it.Key(), value)
		}
		return out
	default:
		return v
	}
}

// copyOf is deepCopy for a pointer.
func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	out := deepCopy(reflect.ValueOf(p)).Interface()
	return out.(*T)
}

// sameValue reports whether two values of one type mean the same: empty and absent lists and maps
// are equal, and so are numbers in free-form configuration whatever type a codec decoded them to.
func sameValue(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() {
		return a.IsValid() == b.IsValid()
	}
	// the others hold nothing of interest here.
	//exhaustive:ignore
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return a.Pointer() == b.Pointer() || sameValue(a.Elem(), b.Elem())
	case reflect.Interface:
		return sameAny(a, b)
	case reflect.Struct:
		for i := range a.NumField() {
			if !sameValue(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !sameValue(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.Len() != b.Len() {
			return false
		}
		for it := a.MapRange(); it.Next(); {
			other := b.MapIndex(it.Key())
			if !other.IsValid() || !sameValue(it.Value(), other) {
				return false
			}
		}
		return true
	default:
		return a.Equal(b)
	}
}

func sameAny(a, b reflect.Value) bool {
	a, b = a.Elem(), b.Elem()
	if !a.IsValid() || !b.IsValid() {
		return a.IsValid() == b.IsValid()
	}
	if x, ok := asFloat(a); ok {
		y, ok := asFloat(b)
		return ok && x == y && sameWhole(a, b)
	}
	if a.Type() != b.Type() {
		return false
	}
	// the others hold nothing of interest here.
	//exhaustive:ignore
	switch a.Kind() {
	case reflect.Map, reflect.Slice, reflect.Struct, reflect.Pointer:
		return sameValue(a, b)
	}
	return a.Comparable() && a.Equal(b)
}

// sameWhole compares whole numbers that are too large for a float64.
func sameWhole(a, b reflect.Value) bool {
	x, xok := asInt(a)
	y, yok := asInt(b)
	return !xok || !yok || x == y
}

func asInt(v reflect.Value) (int64, bool) {
	switch {
	case v.CanInt():
		return v.Int(), true
	case v.CanUint() && v.Uint() <= math.MaxInt64:
		return int64(v.Uint()), true
	}
	return 0, false
}

func asFloat(v reflect.Value) (float64, bool) {
	switch {
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanUint():
		return float64(v.Uint()), true
	case v.CanFloat():
		return v.Float(), true
	}
	return 0, false
}
