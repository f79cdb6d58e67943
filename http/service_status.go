package http

import (
	"context"

	"flagledger/events"
	"flagledger/http/rest"
)

// ServiceStatus is the state of the service, as the answering node saw it a few seconds ago.
type ServiceStatus struct {
	EventStore EventStoreStatus  `json:"eventStore"`
	Database   DatabaseStatus    `json:"database"`
	Snapshot   SnapshotStatus    `json:"snapshot"`
	ReadModels []ReadModelStatus `json:"readModels"`
	Jobs       []JobsStatus      `json:"jobs" doc:"Jobs that are not completed, by kind and state"`
	JobsBehind float64           `json:"jobsBehind" doc:"Seconds since the oldest fact without jobs yet; 0 if there is none" example:"0"`
	JobsLag    int               `json:"jobsLag" doc:"Facts for which no jobs have been created yet" example:"0"`
}

// EventStoreStatus is the state of the event store.
type EventStoreStatus struct {
	Engine    string `json:"engine" enum:"postgres,eventstore" example:"postgres"`
	Reachable bool   `json:"reachable" example:"true"`
	Position  uint64 `json:"position" doc:"The end of its log. In Postgres it is the number of facts" example:"4711"`
}

// DatabaseStatus is the state of the database.
type DatabaseStatus struct {
	Reachable bool    `json:"reachable" example:"true"`
	ClockSkew float64 `json:"clockSkew" doc:"Seconds by which the node's clock is ahead of the database's" example:"0.002"`
}

// SnapshotStatus is the state of the flags in memory.
type SnapshotStatus struct {
	Age     float64 `json:"age" doc:"Seconds since it last held the whole log" example:"1.2"`
	LeftOut int64   `json:"leftOut" doc:"Facts that it could not apply" example:"0"`
}

// ReadModelStatus is the state of a read model.
type ReadModelStatus struct {
	Name    string   `json:"name" example:"flags"`
	Version int      `json:"version" example:"7"`
	Built   bool     `json:"built" doc:"false while it cannot be read" example:"true"`
	Lag     int      `json:"lag" doc:"Facts that it has not applied yet, up to the limit of counting" example:"0"`
	Behind  float64  `json:"behind" doc:"Seconds since the oldest of them; 0 if there is none" example:"0"`
	Parked  int      `json:"parked" doc:"Streams that it no longer follows because an event could not be applied" example:"0"`
	Rebuilt *float64 `json:"rebuilt" nullable:"true" doc:"The part of the log that a rebuild has read, from 0 to 1; null if no rebuild is in progress or interrupted" example:"0.42"`
}

// JobsStatus counts the jobs of a kind in a state.
type JobsStatus struct {
	Kind    string `json:"kind" example:"invitation_mail"`
	State   string `json:"state" enum:"available,cancelled,discarded,pending,retryable,running,scheduled" example:"scheduled"`
	Count   int    `json:"count" example:"3"`
	Failing int    `json:"failing" doc:"Jobs that failed five times or were discarded" example:"0"`
}

type serviceStatusBody struct {
	Status      string         `json:"status" enum:"ok,degraded" example:"degraded"`
	Detail      []string       `json:"detail" doc:"The failures that /health reports" example:"[\"the read model audit is being built\"]"`
	Timestamp   rest.Timestamp `json:"timestamp"`
	Version     string         `json:"version" example:"1.0.0"`
	BuildNumber string         `json:"buildNumber" example:"417"`
	Environment string         `json:"environment" example:"production"`
	ServiceStatus
}

type serviceStatusOutput struct{ Body serviceStatusBody }

func (a *API) addServiceStatus() {
	op := rest.Operation("GET", "/api/v1/admin/status", "get-service-status", "Platform",
		"The state of the service: read models, jobs, event store, snapshot")
	op.Description = "As the answering node saw it a few seconds ago. Each node has its own snapshot."
	rest.Register(a.Core, rest.PlatformAccess(events.PlatformAdmin), op, func(context.Context,
		*struct{}) (*serviceStatusOutput, error) {
		body := serviceStatusBody{
			Status: "ok", Detail: append([]string{}, a.options.Troubles()...), Timestamp: rest.Timestamp(a.Now()),
			Version: Version, BuildNumber: a.options.Build, Environment: a.Environment, ServiceStatus: a.options.Status(),
		}
		if len(body.Detail) > 0 {
			body.Status = "degraded"
		}
		return &serviceStatusOutput{body}, nil
	})
}
