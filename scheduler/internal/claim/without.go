package claim

import (
	"fmt"

	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Without is why instances use no claim.
type Without struct {
	Reasons  []string
	Withheld []string // why they must not run opportunistically; nil: they may
}

// WhyWithout returns why so many instances of each of some groups use no claim: together they may exceed what their namespace owns. required: others
// of their gang are guaranteed.
func WhyWithout(in *search.Input, e *world.Edit, requests []*search.Request, instances []int, required bool) (w Without) {
	owns := world.Base(e).Owns(in.Job.Namespace)
	if !owns && !in.WaitsForClaims() {
		return w
	}
	slots := mayUseSlots(in, e)
	if !owns && slots && !required && in.Job.Class == structs.ClassGuaranteed { // it waits for slots alone
		w.Withheld = []string{withheldByClass}
		return w
	}
	exceeded := Exceeded(e, in.Job, requests, instances)
	pins, pinned := []string(nil), false
	if owns {
		pins, pinned = PinReasons(e, in.Job, requests)
		pins = append(pins, Unusable(e, in.Job, requests)...)
	}
	w.Reasons = append(Reasons(in.Job.Namespace, exceeded), pins...)
	switch {
	case required:
		w.Withheld = append(w.Reasons, "withheld: its gang is guaranteed, and would not be without it")
	case in.Job.Class == structs.ClassGuaranteed && (slots || WantsDevices(requests)):
		if !owns {
			w.Reasons = append(w.Reasons, fmt.Sprintf("claim: namespace %q owns no cells at present", in.Job.Namespace))
		}
		if len(w.Reasons) == 0 && WantsDevices(requests) {
			w.Reasons = append(w.Reasons, "claim: no free cell of its namespace holds it")
		}
		w.Withheld = append(w.Reasons, withheldByClass)
	case pinned:
		w.Withheld = append(w.Reasons, "withheld by its topology, which requires the pinned cell")
	case in.WaitsOverLimit() && len(exceeded) > 0:
		w.Withheld = append(w.Reasons, fmt.Sprintf("withheld by over_limit = %q", in.OverLimit))
	}
	return w
}

// mayUseSlots reports whether instances of a job may use slots of its project, in this week or another.
func mayUseSlots(in *search.Input, e *world.Edit) bool {
	book := world.Base(e).Slots()
	return book != nil && in.Job.Project != "" && book.Spec(in.Job.Project) != nil
}

const withheldByClass = `withheld by class = "guaranteed"`
