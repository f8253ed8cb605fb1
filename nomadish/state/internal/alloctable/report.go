package alloctable

import (
	"encoding/binary"
	"maps"
	"reflect"
	"slices"
	"time"
	"unique"

	"github.com/nomadish/nomadish/structs"
)

// report is what the client reported about an allocation, but for its status. As values of
// their own its tasks' states and their events are some two kilobytes; most of that is
// the same for all that run the same job, and stands once. It is never changed.
type report struct {
	form    ReportForm // all but the times; see packer
	times   string
	network *structs.AllocNetworkStatus
}

// noDetails stands for every event's details without any: values that are read are never
// changed.
var noDetails = map[string]string{}

// pack returns what a client has reported about a; nil: nothing.
func (p *packer) pack(a *structs.Allocation) *report {
	if a.TaskStates == nil && a.ClientDescription == "" && a.DeploymentStatus == nil && a.NetworkStatus == nil {
		return nil
	}
	p.form, p.times, p.last = p.form[:0], p.times[:0], 0
	p.text(a.ClientDescription)
	p.deployment(a.DeploymentStatus)
	p.tasks(a.TaskStates)
	return &report{form: unique.Make(string(p.form)), times: string(p.times), network: a.NetworkStatus}
}

// sameReport reports whether two allocations have what a client reported as the very same
// values.
func sameReport(a, b *structs.Allocation) bool {
	return reflect.ValueOf(a.TaskStates).Pointer() == reflect.ValueOf(b.TaskStates).Pointer() &&
		a.ClientDescription == b.ClientDescription && a.DeploymentStatus == b.DeploymentStatus && a.NetworkStatus == b.NetworkStatus
}

// applyTo sets in a what the client reported, brief without the events of tasks that have not
// ended. What it sets is a's own, but for the details of events that have none.
func (s *report) applyTo(a *structs.Allocation, brief bool) {
	u := unpacker{form: s.form.Value(), times: s.times, brief: brief}
	a.ClientDescription = u.text()
	a.DeploymentStatus = u.deployment()
	a.TaskStates = u.tasks()
	a.NetworkStatus = s.network
}

// packer writes the form, in which a field without a value costs a bit, and the times,
// each as how much later it is than the one before. It is used over and over.
type packer struct {
	form, times []byte
	last        int64
}

// unpacker reads what a packer has written. Its texts are parts of the form.
type unpacker struct {
	form, times string
	last        int64
	brief       bool              // see applyTo
	over        structs.TaskEvent // an event that is passed over
}

func (p *packer) number(n uint64)  { p.form = binary.AppendUvarint(p.form, n) }
func (p *packer) integer(n int64)  { p.form = binary.AppendVarint(p.form, n) }
func (p *packer) text(s string)    { p.number(uint64(len(s))); p.form = append(p.form, s...) }
func (u *unpacker) integer() int64 { return signed(u.number()) }
func (u *unpacker) number() uint64 { return cutNumber(&u.form) }

func (u *unpacker) text() string {
	n := u.number()
	s := u.form[:n]
	u.form = u.form[n:]
	return s
}

// cutNumber takes a number of binary.AppendUvarint from the beginning of s.
func cutNumber(s *string) (n uint64) {
	for i := range len(*s) {
		c := (*s)[i]
		n |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			*s = (*s)[i+1:]
			return n
		}
	}
	*s = ""
	return n
}

// signed is the number that binary.AppendVarint writes as n.
func signed(n uint64) int64 { return int64(n>>1) ^ -int64(n&1) } // bits are moved

// nanos writes a time in Unix nanoseconds.
func (p *packer) nanos(t int64) {
	p.times = binary.AppendVarint(p.times, t-p.last)
	p.last = t
}

func (u *unpacker) nanos() int64 {
	u.last += signed(cutNumber(&u.times))
	return u.last
}

// How a time is written.
const (
	noTime    = iota // the zero time
	nanosTime        // among the times
	farTime          // too far away for nanoseconds, so in the form
)

func timeKind(t time.Time) uint64 {
	switch {
	case t.IsZero():
		return noTime
	case time.Unix(0, t.UnixNano()).Equal(t):
		return nanosTime
	default:
		return farTime
	}
}

func (p *packer) time(t time.Time) {
	switch timeKind(t) {
	case nanosTime:
		p.nanos(t.UnixNano())
	case farTime:
		p.integer(t.Unix())
		p.integer(int64(t.Nanosecond()))
	}
}

func (u *unpacker) time(kind uint64) time.Time {
	switch kind {
	case nanosTime:
		return time.Unix(0, u.nanos()).UTC()
	case farTime:
		sec := u.integer()
		return time.Unix(sec, u.integer()).UTC()
	}
	return time.Time{}
}

// flags are bits that are read in the order in which they were added.
type flags struct {
	bits uint64
	n    int
}

func (f *flags) add(v uint64, width int) {
	f.bits |= v << f.n
	f.n += width
}

func (f *flags) yes(v bool) {
	if v {
		f.bits |= 1 << f.n
	}
	f.n++
}

func (f *flags) next(width int) uint64 {
	v := f.bits & (1<<width - 1)
	f.bits >>= width
	return v
}

func (f *flags) is() bool { return f.next(1) == 1 }

func (p *packer) deployment(d *structs.AllocDeploymentStatus) {
	var f flags
	if f.yes(d != nil); d == nil {
		p.number(f.bits)
		return
	}
	f.yes(d.Canary)
	f.yes(d.Healthy != nil)
	f.yes(d.Healthy != nil && *d.Healthy)
	f.add(timeKind(d.Timestamp), 2)
	p.number(f.bits)
	p.time(d.Timestamp)
	p.times = binary.AppendUvarint(p.times, d.ModifyIndex) // differs as times do
}

func (u *unpacker) deployment() *structs.AllocDeploymentStatus {
	f := flags{bits: u.number()}
	if !f.is() {
		return nil
	}
	d := &structs.AllocDeploymentStatus{Canary: f.is()}
	decided, healthy := f.is(), f.is()
	if decided {
		d.Healthy = &healthy
	}
	d.Timestamp = u.time(f.next(2))
	d.ModifyIndex = cutNumber(&u.times)
	return d
}

// size writes how long a list or map is, and whether there is none.
func (p *packer) size(n int, none bool) {
	if none {
		n = -1
	}
	p.number(uint64(n + 1)) // not negative
}

func (u *unpacker) size() (n int, none bool) {
	n = int(u.number()) - 1 // a size of ours
	return max(n, 0), n < 0
}

func (p *packer) tasks(tasks map[string]*structs.TaskState) {
	p.size(len(tasks), tasks == nil)
	if len(tasks) == 1 { // nearly all
		for name, t := range tasks { // order does not matter: there is one
			p.text(name)
			p.task(t)
		}
		return
	}
	for _, name := range slices.Sorted(maps.Keys(tasks)) {
		p.text(name)
		p.task(tasks[name])
	}
}

func (u *unpacker) tasks() map[string]*structs.TaskState {
	n, none := u.size()
	if none {
		return nil
	}
	tasks := make(map[string]*structs.TaskState, n)
	for range n {
		name := u.text()
		tasks[name] = u.task()
	}
	return tasks
}

func (p *packer) task(t *structs.TaskState) {
	var f flags
	if f.yes(t != nil); t == nil {
		p.number(f.bits)
		return
	}
	f.yes(t.Failed)
	for _, at := range []time.Time{t.LastRestart, t.StartedAt, t.FinishedAt} {
		f.add(timeKind(at), 2)
	}
	p.number(f.bits)
	p.text(t.State)
	p.number(t.Restarts)
	p.time(t.LastRestart)
	p.time(t.StartedAt)
	p.time(t.FinishedAt)
	p.size(len(t.Events), t.Events == nil)
	for _, e := range t.Events {
		p.event(e)
	}
}

func (u *unpacker) task() *structs.TaskState {
	f := flags{bits: u.number()}
	if !f.is() {
		return nil
	}
	t := &structs.TaskState{Failed: f.is(), State: u.text(), Restarts: u.number()}
	t.LastRestart = u.time(f.next(2))
	t.StartedAt = u.time(f.next(2))
	t.FinishedAt = u.time(f.next(2))
	n, none := u.size()
	if none {
		return t
	}
	if u.brief && t.State != structs.TaskStateDead {
		for range n {
			u.event(&u.over)
		}
		return t
	}
	t.Events = make([]*structs.TaskEvent, n)
	room := make([]structs.TaskEvent, n)
	for i := range room {
		if u.event(&room[i]) {
			t.Events[i] = &room[i]
		}
	}
	return t
}

// eventTexts are an event's fields of text, eventNumbers those of numbers, in the order
// in which they are written.
func eventTexts(e *structs.TaskEvent) [9]*string {
	return [...]*string{
		&e.Type, &e.DisplayMessage, &e.Message, &e.RestartReason, &e.DriverError, &e.KillReason, &e.KillError, &e.FailedSibling, &e.TaskSignal,
	}
}

func eventNumbers(e *structs.TaskEvent) [4]int64 {
	return [...]int64{int64(e.ExitCode), int64(e.Signal), int64(e.KillTimeout), e.StartDelay}
}

func setEventNumbers(e *structs.TaskEvent, n [4]int64) {
	e.ExitCode, e.Signal, e.KillTimeout, e.StartDelay = int(n[0]), int(n[1]), time.Duration(n[2]), n[3]
}

func (p *packer) event(e *structs.TaskEvent) {
	var f flags
	if f.yes(e != nil); e == nil {
		p.number(f.bits)
		return
	}
	texts, numbers := eventTexts(e), eventNumbers(e)
	f.yes(e.FailsTask)
	f.yes(e.Details != nil)
	f.yes(len(e.Details) > 0)
	for _, s := range texts {
		f.yes(*s != "")
	}
	for _, n := range numbers {
		f.yes(n != 0)
	}
	p.number(f.bits)
	p.nanos(e.Time)
	if len(e.Details) > 0 {
		p.number(uint64(len(e.Details)))
		for _, k := range slices.Sorted(maps.Keys(e.Details)) {
			p.text(k)
			p.text(e.Details[k])
		}
	}
	for _, s := range texts {
		if *s != "" {
			p.text(*s)
		}
	}
	for _, n := range numbers {
		if n != 0 {
			p.integer(n)
		}
	}
}

// event reads an event; false: there is none.
func (u *unpacker) event(e *structs.TaskEvent) bool {
	f := flags{bits: u.number()}
	if !f.is() {
		return false
	}
	e.FailsTask, e.Time = f.is(), u.nanos()
	if f.is() {
		e.Details = noDetails
	}
	if f.is() {
		n := u.number()
		e.Details = make(map[string]string, n)
		for range n {
			k := u.text()
			e.Details[k] = u.text()
		}
	}
	for _, s := range eventTexts(e) {
		if f.is() {
			*s = u.text()
		}
	}
	var numbers [4]int64
	for i := range numbers {
		if f.is() {
			numbers[i] = u.integer()
		}
	}
	setEventNumbers(e, numbers)
	return true
}
