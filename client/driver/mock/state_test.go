package mock

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// A handle's state keeps the names of its fields: agents of other versions find the task by it.
func TestStateKeepsItsNames(t *testing.T) {
	at := time.Unix(1700000000, 0).UTC()
	var s state
	if err := json.Unmarshal([]byte(`{"PausedAt":"2023-11-14T22:13:20Z"}`), &s); err != nil || !s.SuspendedAt.Equal(at) {
		t.Fatalf("%+v, %v", s, err)
	}
	if data, err := json.Marshal(&s); err != nil || !strings.Contains(string(data), `"PausedAt":`) {
		t.Errorf("written as %s, %v", data, err)
	}
}
