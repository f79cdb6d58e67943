package queries
