package http

import (
	"context"

	"flagledger/events"
)

// ServiceStatus is how the service stands, as the node that answers saw it a few seconds ago.
type ServiceStatus struct {
	EventStore EventStoreStatus  `json:"eventStore"`
	Database   DatabaseStatus    `json:"database"`
	Snapshot   SnapshotStatus    `json:"snapshot"`
	ReadModels []ReadModelStatus `json:"readModels"`
	Jobs       []JobsStatus      `json:"jobs" doc:"Those that are not completed, by kind and state"`
	JobsBehind float64           `json:"jobsBehind" doc:"Seconds since the oldest fact from which no jobs have been made yet; 0 where there is none" example:"0"`
	JobsLag    int               `json:"jobsLag" doc:"Facts from which no jobs have been made yet" example:"0"`
}

// EventStoreStatus is how the event store stands.
type EventStoreStatus struct {
	Engine    string `json:"engine" enum:"postgres,eventstore" example:"postgres"`
	Reachable bool   `json:"reachable" example:"true"`
	Position  uint64 `json:"position" doc:"Where its log ends. In Postgres that is the number of facts" example:"4711"`
}

// DatabaseStatus is how the database stands.
type DatabaseStatus struct {
	Reachable bool    `json:"reachable" example:"true"`
	ClockSkew float64 `json:"clockSkew" doc:"Seconds by which the node's clock is ahead of the database's" example:"0.002"`
}

// SnapshotStatus is how the flags in memory stand, from which they are evaluated.
type SnapshotStatus struct {
	Age     float64 `json:"age" doc:"Seconds since it was last seen to hold all of the log" example:"1.2"`
	LeftOut int64   `json:"leftOut" doc:"Facts that it could not take in" example:"0"`
}

// ReadModelStatus is how a read model stands.
type ReadModelStatus struct {
	Name    string   `json:"name" example:"flags"`
	Version int      `json:"version" example:"7"`
	Built   bool     `json:"built" doc:"false while nothing of it can be read" example:"true"`
	Lag     int      `json:"lag" doc:"Facts that it has not taken in yet, as far as they are counted" example:"0"`
	Behind  float64  `json:"behind" doc:"Seconds since the oldest of them; 0 where there is none" example:"0"`
	Parked  int      `json:"parked" doc:"Streams that it has stopped following" example:"0"`
	Rebuilt *float64 `json:"rebuilt" nullable:"true" doc:"The part of the log that a rebuild has read, from 0 to 1; null where none is under way or was interrupted" example:"0.42"`
}

// JobsStatus is how many jobs of a kind are in a state.
type JobsStatus struct {
	Kind    string `json:"kind" example:"invitation_mail"`
	State   string `json:"state" enum:"available,cancelled,discarded,pending,retryable,running,scheduled" example:"scheduled"`
	Count   int    `json:"count" example:"3"`
	Failing int    `json:"failing" doc:"Those that failed five times or were given up" example:"0"`
}

type serviceStatusBody struct {
	Status      string    `json:"status" enum:"ok,degraded" example:"degraded"`
	Detail      []string  `json:"detail" doc:"What is out of order, as /health tells it" example:"[\"the read model audit is being built\"]"`
	Timestamp   timestamp `json:"timestamp"`
	Version     string    `json:"version" example:"1.0.0"`
	BuildNumber string    `json:"buildNumber" example:"417"`
	Environment string    `json:"environment" example:"production"`
	ServiceStatus
}

type serviceStatusOutput struct{ Body serviceStatusBody }

func (a *API) addServiceStatus() {
	op := operation("GET", "/api/v1/admin/status", "get-service-status", "Platform",
		"How the service stands: read models, jobs, event store, snapshot")
	op.Description = "As the node that answers saw it a few seconds ago. Several nodes have a snapshot each."
	register(a, onPlatform(events.PlatformAdmin), op, func(context.Context, *struct{}) (*serviceStatusOutput, error) {
		body := serviceStatusBody{
			Status: "ok", Detail: append([]string{}, a.Troubles()...), Timestamp: timestamp(a.Now()),
			Version: Version, BuildNumber: a.Build, Environment: a.Environment, ServiceStatus: a.Status(),
		}
		if len(body.Detail) > 0 {
			body.Status = "degraded"
		}
		return &serviceStatusOutput{body}, nil
	})
}
