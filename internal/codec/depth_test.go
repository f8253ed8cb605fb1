package codec

import (
	"strings"
	"testing"
)

// TestTooDeep: lists and maps within each other are counted, whatever else is beside them, and those beside each other are not.
func TestTooDeep(t *testing.T) {
	nested := func(depth int) any {
		var v any = map[string]any{"a": 1}
		for i := range depth - 1 {
			switch i % 4 {
			case 0:
				v = map[string]any{"a": nil, "b": v, "c": strings.Repeat("x", 40_000), "d": map[string]any{}, "e": []any{true}}
			case 1:
				v = []any{-5, v, 1.5}
			case 2:
				v = append(make([]any, 20), v)
			default:
				v = map[int]any{1: 1, 2: v, 3: []byte("x"), 4: uint16(4), 5: 5, 6: 6, 7: 7, 8: 8, 9: 9, 10: 10, 11: 11, 12: 12, 13: 13, 14: 14, 15: 15, 16: 16}
			}
		}
		return v
	}
	for _, depth := range []int{1, 2, 100, MaxWrittenDepth - 1, MaxWrittenDepth, MaxWrittenDepth + 1, 1000} {
		raw, err := Encode([]any{make([]any, 2000), "after it", nested(depth - 1), nil})
		if depth == 1 {
			raw, err = Encode(nested(1))
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := TooDeep(raw); got != (depth > MaxWrittenDepth) {
			t.Errorf("%d within each other are too deep: %v", depth, got)
		}
		for n := range min(len(raw), 100) {
			TooDeep(raw[:n])
		}
	}
	for b := range 256 {
		TooDeep([]byte{byte(b)})
		TooDeep([]byte{byte(b), 0xff, 0xff, 0xff, 0xff})
	}
}
