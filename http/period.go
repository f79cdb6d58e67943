package http

import "time"

// PeriodInput narrows a list to what is of some time.
type PeriodInput struct {
	From time.Time `query:"from" doc:"Entries of this time and later"`
	To   time.Time `query:"to" doc:"Entries before this time"`
}
