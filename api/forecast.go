package api

import (
	"context"
	"strconv"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// Forecast reads the last forecast of what waits in the queue, a page of it: of a job, or (empty) of all of the namespace. A page has at most 1,000
// groups: Meta.NextToken is where the next begins. horizon is how far it is to look; 0: as far as forecasts do.
func (c *Client) Forecast(ctx context.Context, job string, horizon time.Duration, q *Query) (answer *structs.ForecastAnswer, meta Meta, err error) {
	if job != "" {
		q = q.with("job", job)
	}
	if horizon != 0 {
		q = q.with("horizon", horizon.String())
	}
	meta, err = c.Get(ctx, "/v1/forecast", q, &answer)
	return answer, meta, err
}

// Forecast has a forecast of one job made, of the newest state: what is not known within 2 s is unknown.
func (j Jobs) Forecast(ctx context.Context, id string, q *Query) (f *structs.Forecast, err error) {
	var answer structs.ForecastAnswer
	q = q.with("job", id).with("fresh", strconv.FormatBool(true))
	_, err = j.client.Get(ctx, "/v1/forecast", q, &answer)
	return answer.Forecast, err
}
