package rest

import (
	"time"
)

// PeriodInput filters a list by time.
type PeriodInput struct {
	From time.Time `query:"from" doc:"Entries at this time and later"`
	To   time.Time `query:"to" doc:"Entries before this time"`
}
