package fingerprint

import (
	"context"
	"testing"
	"time"

	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/client/driver/mock"
)

// plain is a driver that cannot suspend.
type plain struct {
	driver.Driver
	health driver.Health
}

func (plain) Name() string { return "plain" }

func (p plain) Fingerprint(context.Context) driver.Fingerprint {
	return driver.Fingerprint{Health: p.health}
}

// TestDriversThatCannotSuspend: a node says of each driver that it has whether it can suspend its tasks.
func TestDriversThatCannotSuspend(t *testing.T) {
	f := func(health driver.Health, want string) {
		t.Helper()
		r, err := driver.NewRegistry(mock.New(nil), plain{health: health})
		if err != nil {
			t.Fatal(err)
		}
		_, attrs := Drivers(t.Context(), r, time.Now())
		if attrs["driver.mock_driver.suspend"] != "1" || attrs["driver.plain.suspend"] != want {
			t.Errorf("a %s driver: %v", health, attrs)
		}
	}
	f(driver.HealthHealthy, "0")
	f(driver.HealthUnhealthy, "0")
	f(driver.HealthUndetected, "")
}
