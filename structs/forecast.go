package structs

import "time"

// DefaultForecastHorizon is how far a forecast looks, and MaxForecastHorizon how far it may.
const (
	DefaultForecastHorizon = 7 * 24 * time.Hour
	MaxForecastHorizon     = 90 * 24 * time.Hour
)

// Forecast states when what waits in the queue starts: what the scheduler will do with the state of an index if nothing comes but what is there.
type Forecast struct {
	Index    uint64 // of the state
	Time     int64  // Unix nanoseconds: when it begins
	Until    int64  // Unix nanoseconds: how far it looks
	Requests []*RequestForecast
	// NoReservations: more wait than get reservations in a forecast. Who needs much at once may start later than is stated, as others pass.
	NoReservations bool `json:",omitempty" codec:",omitempty"`
}

// RequestForecast is the forecast of a group of which instances wait.
type RequestForecast struct {
	Namespace string
	JobID     string
	Group     string
	Missing   int // instances that wait at the time of the forecast
	// Latest is when they start if all that runs takes all the time that it may, Expected if it runs as long as the finished runs of its job, or
	// else of its user, did in the mean.
	Latest   StartForecast
	Expected StartForecast
}

// StartForecast is when the instances of a group that wait start.
type StartForecast struct {
	First int64 // Unix nanoseconds: the first of them; 0: not known
	All   int64 // Unix nanoseconds: the last of them; 0: not known
	// Unknown states why All is not known; empty: it is.
	Unknown string `json:",omitempty" codec:",omitempty"`
	// WaitsFor are the ends of the allocations whose room they get, the first to end first; of many, the first and the last. It is empty if
	// they start at once, or by what ends nowhere: a window, a quota.
	WaitsFor []EndForecast `json:",omitempty" codec:",omitempty"`
}

// EndForecast is when an allocation ends.
type EndForecast struct {
	Time      int64 // Unix nanoseconds
	Namespace string
	JobID     string
	Name      string // job.group[index]
	NodeName  string
}

// Of returns the forecast of a group; nil if none of its instances waits.
func (f *Forecast) Of(namespace, job, group string) *RequestForecast {
	if f == nil {
		return nil
	}
	for _, r := range f.Requests {
		if r.Namespace == namespace && r.JobID == job && r.Group == group {
			return r
		}
	}
	return nil
}
