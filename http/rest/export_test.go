package rest

// OwnSegments are the first segments of all routes.
var OwnSegments = ownSegments

// MachineAnswerQuota returns the key of the quota of unread responses of a tenant's machines.
func (a *Core) MachineAnswerQuota(tenantID string) string {
	return a.answerQuota(&request{credential: &Credential{Machine: &Machine{TenantID: tenantID}}})
}
