package view

import (
	"context"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// noForecasts is what makes no forecasts.
type noForecasts struct{}

// Horizon implements Forecasts.
func (noForecasts) Horizon() time.Duration { return structs.DefaultForecastHorizon }

// Last implements Forecasts.
func (noForecasts) Last() (*structs.Forecast, string) { return nil, "this server makes no forecasts" }

// Await implements Forecasts.
func (noForecasts) Await(context.Context, uint64) {}

// Job implements Forecasts.
func (noForecasts) Job(context.Context, structs.NamespacedID) (*structs.Forecast, error) {
	return nil, structs.Errorf(structs.CodeUnsupported, "this server makes no forecasts")
}

// Moved implements Forecasts.
func (noForecasts) Moved(ctx context.Context, from uint64) ([]*structs.ForecastMove, uint64, error) {
	<-ctx.Done()
	return nil, from, ctx.Err()
}
