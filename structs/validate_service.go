package structs

import (
	"slices"
	"strconv"
	"time"
)

// validateServices checks the services of a group and its tasks.
func (g *TaskGroup) validateServices(r reporter) {
	ports := g.portNames()
	providers := map[string]bool{}
	for i, s := range g.Services {
		providers[s.Provider] = true
		s.validate(r.in("service", "", i), g, ports)
	}
	for ti, t := range g.Tasks {
		for i, s := range t.Services {
			providers[s.Provider] = true
			in := r.in("task", t.Name, ti).in("service", "", i)
			s.validate(in, g, ports)
			if s.TaskName != t.Name {
				in.addf("task", "must be %q, the task that the service is in, not %q", clip(t.Name), clip(s.TaskName))
			}
		}
	}
	if len(providers) > 1 {
		r.addf("service", "all services of a group must have one provider, not %s", orList(sortedKeys(providers)))
	}
}

func (s *Service) validate(r reporter, g *TaskGroup, ports []string) {
	checkName(r, "name", s.Name)
	s.validatePort(r, "port", s.PortLabel, ports)
	names := make([]string, 0, len(s.Checks))
	for i, c := range s.Checks {
		in := r.in("check", "", i)
		if c.Name != "" {
			names = append(names, c.Name)
		}
		c.validate(in, s, g)
		s.validatePort(in, "port", c.PortLabel, ports)
	}
	r.unique("check", "checks", names)
	if s.TaskName != "" && g.LookupTask(s.TaskName) == nil {
		r.addf("task", "the group has no task %q", clip(s.TaskName))
	}
	if c := s.Connect; c != nil && s.Provider == ServiceProviderNomad {
		r.in("connect", "", -1).addf("", `cannot be used with provider = "nomad"`)
	}
}

func (s *Service) validatePort(r reporter, field, port string, known []string) {
	if port == "" || slices.Contains(known, port) || hasReference(port) || s.Connect != nil {
		return
	}
	if n, err := strconv.Atoi(port); err == nil && n >= 0 && n <= 65535 {
		return
	}
	r.addf(field, "no network of the group has a port %q%s", clip(port), didYouMean(port, known))
}

func (c *ServiceCheck) validate(r reporter, s *Service, g *TaskGroup) {
	if c.Type == "" {
		r.addf("type", `must be "http", "tcp", "script" or "grpc"`)
	}
	if s.Provider == ServiceProviderNomad && (c.Type == ServiceCheckScript || c.Type == ServiceCheckGRPC) {
		r.addf("type", `must be "http" or "tcp" with provider = "nomad", not %q`, clip(c.Type))
	}
	switch c.Type {
	case ServiceCheckHTTP:
		r.need("path", c.Path)
	case ServiceCheckScript:
		r.need("command", c.Command)
	}
	if c.Interval < time.Second {
		r.addf("interval", "must be at least \"1s\", not %q", c.Interval.String())
	}
	if c.Timeout < time.Second {
		r.addf("timeout", "must be at least \"1s\", not %q", c.Timeout.String())
	}
	if c.TaskName != "" && g.LookupTask(c.TaskName) == nil {
		r.addf("task", "the group has no task %q", clip(c.TaskName))
	}
}
