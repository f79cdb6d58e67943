package rest

import "flagledger/events"

// ServedBody is what a required flag may serve, in requests and responses.
type ServedBody struct {
	VariationID string `json:"variationId,omitzero" doc:"A variation of the required flag" example:"0198c5a1-7d2e-7b10-9d0c-3f5f3f1f2a77"`
	Value       Value  `json:"value,omitzero"`
}

// ShowServed shows what a required flag may serve, nil for nothing.
func ShowServed(list []events.ServedValue) (shown []ServedBody) {
	for _, s := range list {
		shown = append(shown, ServedBody{s.VariationID, Value(s.Value)})
	}
	return shown
}
