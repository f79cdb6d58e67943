package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/google/uuid"
)

// Stored is an event as engines store it: JSON, the permanent name of its fact, and the version of the fact's shape.
// As the fact of an Event it is appended unchanged, so that a copy has the same bytes.
type Stored struct {
	ID       uuid.UUID
	Name     string
	Version  int
	Data     []byte
	Metadata []byte
	// At is when a store recorded it, in whole microseconds; zero before that. An engine stores a given time
	// unchanged.
	At time.Time
	// AcceptUntil lets an engine accept a copy with an At up to this time, even if the engine's clock is earlier.
	AcceptUntil time.Time
}

// RecordedTime returns when an append at a time records s: a copy keeps its own time.
func (s Stored) RecordedTime(appended time.Time) time.Time {
	if s.At.IsZero() {
		return appended
	}
	return s.At.UTC().Truncate(time.Microsecond)
}

type kind struct {
	version int // the version written now
	decode  func(data []byte) (Fact, error)
	upcast  upcasters
}

// kinds lists all facts that may be stored. A name stays forever, as does a golden file in testdata for each version.
var kinds = map[string]kind{
	"flag.created":                  {2, decode[FlagCreated], nil},
	"flag.updated":                  {3, decode[FlagUpdated], nil},
	"flag.status_changed":           {1, decode[FlagStatusChanged], nil},
	"flag.enabled":                  {1, decode[FlagEnabled], nil},
	"flag.disabled":                 {1, decode[FlagDisabled], nil},
	"flag.variation_added":          {1, decode[VariationAdded], nil},
	"flag.variation_updated":        {1, decode[VariationUpdated], nil},
	"flag.variation_removed":        {1, decode[VariationRemoved], nil},
	"flag.rules_changed":            {2, decode[RulesChanged], upcasters{1: rulesChangedV1}},
	"flag.fallthrough_changed":      {1, decode[FallthroughChanged], nil},
	"flag.prerequisites_changed":    {1, decode[PrerequisitesChanged], nil},
	"flag.deleted":                  {1, decode[FlagDeleted], nil},
	"flag.reverted":                 {1, decode[FlagReverted], nil},
	"segment.created":               {1, decode[SegmentCreated], nil},
	"segment.updated":               {1, decode[SegmentUpdated], nil},
	"segment.rules_changed":         {1, decode[SegmentRulesChanged], nil},
	"segment.members_added":         {1, decode[SegmentMembersAdded], nil},
	"segment.members_removed":       {1, decode[SegmentMembersRemoved], nil},
	"segment.deleted":               {1, decode[SegmentDeleted], nil},
	"segment.forgotten":             {1, decode[SegmentForgotten], nil},
	"segment.reverted":              {1, decode[SegmentReverted], nil},
	"project.created":               {1, decode[ProjectCreated], nil},
	"project.updated":               {1, decode[ProjectUpdated], nil},
	"project.deleted":               {1, decode[ProjectDeleted], nil},
	"tenant.created":                {3, decode[TenantCreated], upcasters{1: tenantCreatedV1}},
	"tenant.environment_added":      {2, decode[EnvironmentAdded], nil},
	"tenant.environment_deleted":    {1, decode[EnvironmentDeleted], nil},
	"tenant.environments_arranged":  {1, decode[EnvironmentsArranged], nil},
	"tenant.updated":                {2, decode[TenantUpdated], nil},
	"tenant.flag_rules_changed":     {1, decode[FlagRulesChanged], nil},
	"tenant.deleted":                {1, decode[TenantDeleted], nil},
	"tenant.member_added":           {1, decode[MemberAdded], nil},
	"tenant.member_invited":         {1, decode[MemberInvited], nil},
	"tenant.member_joined":          {1, decode[MemberJoined], nil},
	"tenant.member_role_changed":    {1, decode[MemberRoleChanged], nil},
	"tenant.member_removed":         {1, decode[MemberRemoved], nil},
	"tenant.evaluation_key_added":   {1, decode[EvaluationKeyAdded], nil},
	"tenant.evaluation_key_changed": {1, decode[EvaluationKeyChanged], nil},
	"tenant.evaluation_key_rotated": {1, decode[EvaluationKeyRotated], nil},
	"tenant.evaluation_key_removed": {1, decode[EvaluationKeyRemoved], nil},
	"tenant.oauth_client_created":   {1, decode[OAuthClientCreated], nil},
	"tenant.oauth_secret_rotated":   {1, decode[OAuthSecretRotated], nil},
	"tenant.oauth_client_deleted":   {1, decode[OAuthClientDeleted], nil},
	"tenant.subscription_changed":   {1, decode[SubscriptionChanged], nil},
	"user.registered":               {1, decode[UserRegistered], nil},
	"user.session_ended":            {1, decode[SessionEnded], nil},
	"user.sessions_ended":           {1, decode[SessionsEnded], nil},
	"user.platform_role_changed":    {1, decode[PlatformRoleChanged], nil},
	"user.deactivated":              {1, decode[UserDeactivated], nil},
	"user.reactivated":              {1, decode[UserReactivated], nil},
	"user.erased":                   {1, decode[UserErased], nil},
	"invitation.created":            {1, decode[InvitationCreated], nil},
	"invitation.resent":             {1, decode[InvitationResent], nil},
	"invitation.revoked":            {1, decode[InvitationRevoked], nil},
	"invitation.accepted":           {1, decode[InvitationAccepted], nil},
}

// upcasters turn the data of a version, the key, into the next one. A version without an upcaster has the same data.
type upcasters map[int]func([]byte) ([]byte, error)

func decode[F Fact](data []byte) (Fact, error) {
	var f F
	err := json.Unmarshal(data, &f)
	return f, err
}

// StoredName implements Fact.
func (s Stored) StoredName() string { return s.Name }

// Encode returns the stored form of an event; JSON values in facts stay unchanged except for white space. It returns
// an error for a fact that is not in kinds, and ErrTooLarge for an event over MaxEventBytes.
func Encode(e Event) (Stored, error) {
	stored, copied := e.Fact.(Stored)
	if !copied {
		name := e.Fact.StoredName()
		k, ok := kinds[name]
		if !ok {
			return Stored{}, fmt.Errorf("fact %q has no entry in the codec's table", name)
		}
		data, err := Marshal(e.Fact)
		if err != nil {
			return Stored{}, fmt.Errorf("encode %s: %w", name, err)
		}
		stored = Stored{Name: name, Version: k.version, Data: data}
	}
	metadata, err := Marshal(e.Metadata)
	if err != nil {
		return Stored{}, fmt.Errorf("encode metadata of %s: %w", stored.Name, err)
	}
	if len(stored.Data)+len(metadata) > MaxEventBytes {
		return Stored{}, ErrTooLarge
	}
	stored.ID, stored.Metadata = e.ID, metadata
	return stored, nil
}

// Marshal works like json.Marshal without escaping <, > and &, which would change the bytes of a flag's value.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// StoredEqual reports whether two values of the same type are stored as the same JSON.
func StoredEqual[T any](a, b T) bool {
	if reflect.DeepEqual(a, b) { // much cheaper, and the usual case
		return true
	}
	x, errX := Marshal(a)
	y, errY := Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// Decode returns the fact of a stored event, upgrading older versions step by step. It returns an error for an unknown
// name or version.
func Decode(s Stored) (Event, error) {
	e := Event{ID: s.ID}
	if err := json.Unmarshal(s.Metadata, &e.Metadata); err != nil {
		return e, fmt.Errorf("metadata of %s: %w", s.Name, err)
	}
	k, ok := kinds[s.Name]
	if !ok {
		return e, fmt.Errorf("unknown fact %q", s.Name)
	}
	if s.Version < 1 || s.Version > k.version {
		return e, fmt.Errorf("%s has version %d; this program knows 1 to %d", s.Name, s.Version, k.version)
	}
	data := s.Data
	for v := s.Version; v < k.version; v++ {
		up, ok := k.upcast[v]
		if !ok {
			continue
		}
		var err error
		if data, err = up(data); err != nil {
			return e, fmt.Errorf("%s from version %d: %w", s.Name, v, err)
		}
	}
	fact, err := k.decode(data)
	if err != nil {
		return e, fmt.Errorf("%s: %w", s.Name, err)
	}
	e.Fact = fact
	return e, nil
}

// tenantCreatedV1 adds the plan, which version 1 did not record: sandboxes had the sandbox plan, all others the free
// one.
func tenantCreatedV1(data []byte) ([]byte, error) {
	var t TenantCreated
	if err := json.Unmarshal(data, &t); err != nil {
		return nil, err
	}
	t.Plan = FreePlan
	if t.Sandbox {
		t.Plan = SandboxPlan
	}
	return Marshal(t)
}
