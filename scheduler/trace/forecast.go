package trace

// ForecastFigures are how right forecasts of the queue were, which were made at a fixed interval while the trace was replayed by the parts of a
// leader (docs/guides/simulation.md).
type ForecastFigures struct {
	Every   float64 // seconds between two forecasts
	Horizon float64 // seconds: how far each looked
	// Forecasts is how many there were, Waiting the mean of the jobs that waited then.
	Forecasts int64
	Waiting   float64
	// Jobs of the trace, and Waited those that waited at one forecast at least.
	Jobs, Waited int64
	// WaitMean is the mean time from arrival to the start of all instances, of all jobs, in seconds.
	WaitMean float64
	// Estimators names what is compared, in the order in which Accuracy has it.
	Estimators []string
	// First is of the first forecast of each job that waited, All of every forecast of each.
	First, All ForecastAccuracy
	// Late are jobs that started later than their first forecast stated at the latest, the first MaxLate of them.
	Late []LateStart `json:",omitempty"`
	// Days are by the days of the trace, of all forecasts.
	Days []ForecastDay
}

// MaxLate bounds the late starts that are listed.
const MaxLate = 10_000

// What is compared.
const (
	EstimateLatest     = "latest"
	EstimateExpected   = "expected"
	EstimateWholeNodes = "whole nodes"
	EstimateAlone      = "by what runs"
)

// Estimators are all that is compared.
func Estimators() []string {
	return []string{EstimateLatest, EstimateExpected, EstimateWholeNodes, EstimateAlone}
}

// ForecastAccuracy is how right forecasts were.
type ForecastAccuracy struct {
	// Stated is how many starts were forecast, of jobs that have started since; Open of those that have not.
	Stated, Open int64
	// LatestKnown is of how many the latest start was known, Exceeded how many started later than that, by a second or more.
	LatestKnown, Exceeded int64
	// ExceededP50 and ExceededP90 are by how much these did, in seconds.
	ExceededP50, ExceededP90 float64
	// Causes are why, and never more than one for each.
	Causes []CauseCount `json:",omitempty"`
	// Errors are by estimator.
	Errors []EstimateErrors
}

// Why a job starts later than was forecast at the latest.
const (
	CauseArrived         = "a job that came after the forecast and ranks higher"
	CauseCame            = "backfill by a job that came after the forecast"
	CausePassed          = "backfill by a job that was forecast to start later"
	CauseOvertaken       = "a job that was forecast to start later, and ranked higher by then"
	CauseReserved        = "its room was reserved for another job"
	CauseDelayed         = "a job that was forecast to have ended started late itself, for a cause that is not known"
	CausePassedElsewhere = "backfill by a job that was forecast to run on another node then"
	CauseElsewhere       = "a job that ranks higher, and was forecast to run on another node then"
	CauseUnknown         = "not known"
)

// Causes are all of them, the strongest first.
func Causes() []string {
	return []string{CauseArrived, CauseCame, CausePassed, CausePassedElsewhere, CauseOvertaken, CauseReserved, CauseElsewhere, CauseDelayed, CauseUnknown}
}

// CauseCount is how often a cause was that of a late start. Direct is how often it was that of the job itself; else it was that of a job on whose end it waited.
type CauseCount struct {
	Cause         string
	Count, Direct int64
}

// EstimateErrors are how far estimates were from what happened.
type EstimateErrors struct {
	Of string
	Errors
	// Common is of the starts that every estimator knew.
	Common Errors
	// ByLead is Common by how long it still was until the start in truth, up to the bounds of LeadBounds, the last without one.
	ByLead []Errors
	// Quantiles are those of the error without its sign, at 5, 10, … 95 percent of Common, in seconds.
	Quantiles []float64 `json:",omitempty"`
}

// Errors are of so many starts. Seconds; P50 and P90 are quantiles of the error without its sign, Bias is the median with it: more than 0 means that
// the estimate was later than the start. All are within 1 % of the true ones.
type Errors struct {
	N              int64
	P50, P90, Bias float64
	// Late is how many started later than estimated, by a second or more.
	Late int64
}

// LeadBounds are the upper bounds of EstimateErrors.ByLead, in seconds.
var LeadBounds = []float64{3600, 6 * 3600, 24 * 3600, 3 * 24 * 3600}

// LateStart is a job that started later than was forecast at the latest. Times are seconds since the trace's start.
type LateStart struct {
	Job      string // namespace/name
	Forecast float64
	Latest   float64
	By       float64 // seconds
	Cause    string
	// Who are instances that had its room then, at most eight, each with why it was not to be there.
	Who []string
}

// ForecastDay is a day of the trace.
type ForecastDay struct {
	From     float64 // seconds since the trace's start
	Waiting  float64 // jobs, the mean over forecasts
	Stated   int64
	Exceeded int64
	P50      []float64 // by estimator: the median error without its sign, of the starts that every estimator knew, in seconds
}
