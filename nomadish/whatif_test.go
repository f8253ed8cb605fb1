package nomadish

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// sameWhatIf has each server answer the same what-if on the same state: they give the same bytes.
func (f *fleet) sameWhatIf() {
	f.t.Helper()
	request := &structs.WhatIfRequest{Seed: 7, Time: time.Now().UnixNano(), Changes: []*structs.WhatIfChange{
		{AddNodes: &structs.WhatIfNodes{Count: 2, Node: benchNode(0)}}, {Job: batchJob("another", 3), After: time.Minute},
	}}
	within(f.t, time.Minute, "what-ifs of the same state", func(ctx context.Context) error {
		var answers []*structs.WhatIf
		for _, s := range f.up() {
			reply := &structs.WhatIfReply{}
			if err := s.mux.Local(ctx, wire.MethodWhatIf, request, reply); err != nil {
				return err
			}
			answers = append(answers, reply.WhatIf)
		}
		var first []byte
		for _, w := range answers {
			if w.Index != answers[0].Index {
				return fmt.Errorf("one is of index %d, one of %d", answers[0].Index, w.Index)
			}
			text, err := json.Marshal(w)
			if err != nil {
				return err
			}
			if first == nil {
				first = text
			}
			if !bytes.Equal(first, text) {
				f.t.Fatalf("of index %d, one server answers\n%s\nand one\n%s", w.Index, first, text)
			}
		}
		if n := len(answers[0].Groups); n < 11 {
			f.t.Errorf("%d groups: %s", n, first)
		}
		return nil
	})
}
