package httpapi

import (
	"encoding/json"
	"testing"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/structs"
)

// TestEventsReadAlikeFromEveryServer: events that another server sent are written as the leader writes its own.
func TestEventsReadAlikeFromEveryServer(t *testing.T) {
	t.Parallel()
	own := structs.Events{Index: 7, Events: []structs.Event{
		{Topic: structs.TopicJob, Payload: map[string]any{"Job": &structs.Job{ID: "j", Payload: []byte{0xff, 1}, TaskGroups: []*structs.TaskGroup{{Name: "g"}}}}},
		{Topic: structs.TopicAllocation, Payload: map[string]any{"Allocation": &structs.Allocation{
			ID: "a", TaskStates: map[string]*structs.TaskState{"t": {State: structs.TaskStateRunning, Events: []*structs.TaskEvent{{Type: "Started"}}}},
		}}},
		{Topic: structs.TopicNode, Payload: map[string]any{"Node": &structs.Node{ID: "n"}}},
		{Topic: structs.TopicEvaluation, Payload: map[string]any{"Evaluation": &structs.Evaluation{ID: "e"}}},
		{Topic: structs.TopicOperator, Payload: map[string]any{"SchedulerConfiguration": &structs.SchedulerConfiguration{}}},
		{Topic: structs.TopicQueue, Payload: map[string]any{"Request": &structs.PendingRequest{}}},
	}}
	sent, err := codec.Encode(&own)
	if err != nil {
		t.Fatal(err)
	}
	var got structs.Events
	if err := codec.Decode(sent, &got); err != nil {
		t.Fatal(err)
	}
	got.Events = append(got.Events, structs.Event{Payload: map[string]any{"Later": map[string]any{"X": int64(1)}}})
	if err := typed(&got); err != nil {
		t.Fatal(err)
	}
	if later := got.Events[len(own.Events)].Payload["Later"]; later == nil {
		t.Error("what a newer build tells is lost")
	}
	got.Events = got.Events[:len(own.Events)]
	want, err := json.Marshal(own)
	if err != nil {
		t.Fatal(err)
	}
	have, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != string(want) {
		t.Errorf("from another server:\n%s\nof its own:\n%s", have, want)
	}
}
