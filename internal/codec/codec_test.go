package codec

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestCodecKeepsStringsAndMaps(t *testing.T) {
	in := map[string]any{"command": "/bin/sh", "args": []any{"-c", "true"}, "nested": map[string]any{"n": int64(3)}}
	raw, err := Encode(in)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := Decode(raw, &out); err != nil {
		t.Fatal(err)
	}
	if _, ok := out["command"].(string); !ok {
		t.Fatalf("a string came back as %T", out["command"])
	}
	if _, ok := out["nested"].(map[string]any); !ok {
		t.Fatalf("a map came back as %T", out["nested"])
	}
}

func TestFrameLimit(t *testing.T) {
	var b bytes.Buffer
	if err := WriteFrame(&b, strings.Repeat("x", 1000)); err != nil {
		t.Fatal(err)
	}
	if err := ReadFrame(&b, 100, new(string)); !errors.Is(err, ErrFrameTooLarge) {
		t.Fatalf("a frame over the limit: %v", err)
	}
}
