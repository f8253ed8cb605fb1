package trace

import (
	"math"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// weightOfAll is what the weights of typical request keys add up to, but for rounding.
const weightOfAll = 1_000_000

// Learn returns a Config.Typical that sets what the scheduler knows to have been requested so far, as a
// server learns it. It is for one replay.
func Learn() func(*scheduler.Input, []Typical) {
	var made *scheduler.Typical
	var of *Typical // the first of those that it was made of
	return func(in *scheduler.Input, typical []Typical) {
		if len(typical) == 0 {
			return
		}
		if of != &typical[0] {
			made, of = scheduler.NewTypical(requestsOf(typical)), &typical[0]
		}
		in.Typical = made
	}
}

// requestsOf returns request keys as the scheduler wants them.
func requestsOf(typical []Typical) []structs.TypicalRequest {
	requests := make([]structs.TypicalRequest, 0, len(typical))
	for i := range typical {
		t := &typical[i]
		requests = append(requests, structs.TypicalRequest{
			Job: &structs.Job{}, Group: t.Row.groups()[0], Weight: int64(math.Ceil(t.Share * weightOfAll)),
		})
	}
	return requests
}
