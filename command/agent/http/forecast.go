package httpapi

import (
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// forecast answers when what waits starts, as the last forecast of the server has it, a page of it: of one job with ?job=, no further than ?horizon=
// looks, of the newest state with ?fresh=true and a job.
func forecast(r *request) (any, error) {
	args := structs.ForecastRequest{JobID: r.query.Get("job"), QueryOptions: r.opts}
	var err error
	if args.Fresh, err = r.bool("fresh", false); err != nil {
		return nil, err
	}
	if text := r.query.Get("horizon"); text != "" {
		if args.Horizon, err = time.ParseDuration(text); err != nil || args.Horizon <= 0 {
			return nil, badRequest("horizon %q: must be a duration above 0 such as 24h", text)
		}
	}
	var reply structs.ForecastReply
	if err := r.read(wire.MethodForecast, &args, &reply); err != nil {
		return nil, err
	}
	out := structs.ForecastAnswer{Forecast: reply.Forecast, Why: reply.Why, Newer: list(reply.Newer), NewerCount: reply.NewerCount}
	if f := out.Forecast; f != nil {
		f.Requests = list(f.Requests)
	}
	return out, nil
}
