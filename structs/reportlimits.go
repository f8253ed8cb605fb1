package structs

import "maps"

// What a client may report at most. Of texts and events there is more in earnest than is kept: what is beyond is cut, by clients before
// they send it and by servers for clients of earlier versions. What no client sends is refused.
const (
	MaxTaskText     = 2048 // bytes of a message; more is cut
	MaxReportAllocs = 2048 // allocations in one report; clients send 512

	maxTaskEventsSent = 10 * MaxTaskEvents // events of a task in one report
	maxTaskWord       = 256                // bytes of a task's state, an event's type, the name of a detail
	maxTaskDetails    = 32                 // details of an event of a task
	maxNetworkWords   = 64                 // name servers and the like of an allocation's network
)

// CheckLimits returns an error if a report has what no client sends. It leaves the names of the tasks to who knows the job.
func (u *AllocClientUpdate) CheckLimits() error {
	if len(u.ClientStatus) > maxTaskWord {
		return implausible("allocation %s: the status %q has %d bytes, at most %d are allowed", clip(u.ID), clip(u.ClientStatus), len(u.ClientStatus), maxTaskWord)
	}
	if err := u.NetworkStatus.checkLimits(); err != nil {
		return implausible("allocation %s: %w", clip(u.ID), err)
	}
	for name, t := range u.TaskStates { // order does not matter: any that is wrong will do
		if t == nil {
			return implausible("allocation %s: task %q has no state", clip(u.ID), clip(name))
		}
		if err := t.checkLimits(); err != nil {
			return implausible("allocation %s: task %q: %w", clip(u.ID), clip(name), err)
		}
	}
	return nil
}

func (t *TaskState) checkLimits() error {
	if len(t.State) > maxTaskWord {
		return implausible("the state %q has %d bytes, at most %d are allowed", clip(t.State), len(t.State), maxTaskWord)
	}
	if len(t.Events) > maxTaskEventsSent {
		return implausible("%d events, at most %d are allowed", len(t.Events), maxTaskEventsSent)
	}
	for _, e := range t.Events {
		switch {
		case e == nil:
			return implausible("an event is empty")
		case len(e.Type) > maxTaskWord || len(e.FailedSibling) > maxTaskWord || len(e.TaskSignal) > maxTaskWord:
			return implausible("event %q: its type, sibling or signal has more than %d bytes", clip(e.Type), maxTaskWord)
		case len(e.Details) > maxTaskDetails:
			return implausible("event %q has %d details, at most %d are allowed", clip(e.Type), len(e.Details), maxTaskDetails)
		}
		for k := range e.Details { // order does not matter: any that is too long will do
			if len(k) > maxTaskWord {
				return implausible("event %q has a detail with a name of %d bytes, at most %d are allowed", clip(e.Type), len(k), maxTaskWord)
			}
		}
	}
	return nil
}

func (s *AllocNetworkStatus) checkLimits() error {
	if s == nil {
		return nil
	}
	long := len(s.InterfaceName) > maxTaskWord || len(s.Address) > maxTaskWord || len(s.AddressIPv6) > maxTaskWord
	if s.DNS != nil {
		for _, list := range [][]string{s.DNS.Servers, s.DNS.Searches, s.DNS.Options} {
			long = long || len(list) > maxNetworkWords
			for _, word := range list {
				long = long || len(word) > maxTaskWord
			}
		}
	}
	if long {
		return implausible("network status: more than %d name servers, searches or options, or one of them or of the addresses has more than %d bytes", maxNetworkWords, maxTaskWord)
	}
	return nil
}

// Cut returns the report with its texts cut to so many bytes each, and with the latest so many events of each task. It returns the
// report itself, without a copy, if there is nothing to cut; else a copy of what is changed, because events are shared.
func (u *AllocClientUpdate) Cut(text, events int) *AllocClientUpdate {
	out := u
	if len(u.ClientDescription) > text {
		c := *u
		c.ClientDescription = CutText(u.ClientDescription, text)
		out = &c
	}
	var states map[string]*TaskState
	for name, t := range u.TaskStates { // order does not matter: each is cut by itself
		if t == nil {
			continue
		}
		if s := t.cut(text, events); s != t {
			if states == nil {
				states = maps.Clone(u.TaskStates)
			}
			states[name] = s
		}
	}
	if states == nil {
		return out
	}
	if out == u {
		c := *u
		out = &c
	}
	out.TaskStates = states
	return out
}

func (t *TaskState) cut(text, events int) *TaskState {
	out := t
	if over := len(t.Events) - events; over > 0 {
		c := *t
		c.Events = t.Events[over:]
		out = &c
	}
	for i, e := range out.Events {
		if e == nil || !e.longer(text) {
			continue
		}
		out = out.Copy()
		for j := i; j < len(out.Events); j++ {
			if e := out.Events[j]; e != nil && e.longer(text) {
				out.Events[j] = e.cut(text)
			}
		}
		return out
	}
	return out
}

// texts are those of an event's fields that are as long as what they report.
func (e *TaskEvent) texts() [6]*string {
	return [...]*string{&e.DisplayMessage, &e.Message, &e.RestartReason, &e.DriverError, &e.KillReason, &e.KillError}
}

// longer reports whether a text of the event has more bytes.
func (e *TaskEvent) longer(than int) bool {
	for _, t := range e.texts() {
		if len(*t) > than {
			return true
		}
	}
	for _, v := range e.Details { // order does not matter: any will do
		if len(v) > than {
			return true
		}
	}
	return false
}

func (e *TaskEvent) cut(text int) *TaskEvent {
	c := e.Copy()
	for _, t := range c.texts() {
		*t = CutText(*t, text)
	}
	for k, v := range c.Details { // order does not matter: each is cut by itself
		c.Details[k] = CutText(v, text)
	}
	return c
}

// What parts of a report take when they are encoded, beside their texts, at most: the names of all fields and their numbers.
const (
	updateBytes, stateBytes, eventBytes, pairBytes = 512, 256, 320, 10
)

// Size returns how many bytes the report takes at most when it is encoded.
func (u *AllocClientUpdate) Size() int {
	n := updateBytes + len(u.ID) + len(u.NodeID) + len(u.ClientStatus) + len(u.ClientDescription)
	if s := u.NetworkStatus; s != nil {
		n += stateBytes + len(s.InterfaceName) + len(s.Address) + len(s.AddressIPv6)
		if s.DNS != nil {
			for _, list := range [][]string{s.DNS.Servers, s.DNS.Searches, s.DNS.Options} {
				for _, word := range list {
					n += pairBytes + len(word)
				}
			}
		}
	}
	for name, t := range u.TaskStates { // order does not matter: they are summed
		n += stateBytes + len(name)
		if t == nil {
			continue
		}
		n += len(t.State)
		for _, e := range t.Events {
			n += eventBytes
			if e == nil {
				continue
			}
			n += len(e.Type) + len(e.FailedSibling) + len(e.TaskSignal)
			for _, text := range e.texts() {
				n += len(*text)
			}
			for k, v := range e.Details { // order does not matter: they are summed
				n += pairBytes + len(k) + len(v)
			}
		}
	}
	return n
}

// Fit returns the report cut to at most so many bytes, as far as its texts and events make it larger: ever shorter texts, and then ever
// fewer events.
func (u *AllocClientUpdate) Fit(most int) *AllocClientUpdate {
	u = u.Cut(MaxTaskText, MaxTaskEvents)
	for text := MaxTaskText / 4; u.Size() > most && text >= 32; text /= 4 {
		u = u.Cut(text, MaxTaskEvents)
	}
	for events := MaxTaskEvents / 2; u.Size() > most; events /= 2 {
		u = u.Cut(32, events)
		if events == 0 {
			break
		}
	}
	return u
}
