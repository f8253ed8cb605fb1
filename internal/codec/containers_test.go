package codec

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"
)

// TestContainers: lists and maps are counted in what is encoded of all kinds of values, and of what is cut off nothing breaks.
func TestContainers(t *testing.T) {
	type word string
	for _, c := range []struct {
		v    any
		want int
	}{
		{nil, 1},
		{true, 0},
		{map[string]any{}, 1},
		{[]any{1, -1, -100, -40_000, math.MinInt64, 200, 70_000, uint64(math.MaxUint64), 1.5, float32(1.5), "", nil, false}, 2},
		{[]string{strings.Repeat("x", 31), strings.Repeat("x", 32), strings.Repeat("x", 300), strings.Repeat("x", 70_000)}, 1},
		{map[string]any{"a": []any{[]any{}, map[string]any{}}, "time": time.Unix(1, 5), "bytes": bytes.Repeat([]byte{0x80}, 300)}, 4},
		{make([][]int, 20), 21},
		{[]map[word]int{{}, {"x": 1}, {"y": 2}}, 4},
		{make([]struct{}, 70_000), 70_001},
	} {
		raw, err := Encode(c.v)
		if err != nil {
			t.Fatal(err)
		}
		if got := Containers(raw); got != c.want {
			t.Errorf("%.60v: %d lists and maps are counted, want %d", c.v, got, c.want)
		}
		for n := range min(len(raw), 100) {
			Containers(raw[:n])
		}
	}
	for b := range 256 {
		Containers([]byte{byte(b)})
		Containers([]byte{byte(b), 0xff, 0xff, 0xff, 0xff})
	}
}
