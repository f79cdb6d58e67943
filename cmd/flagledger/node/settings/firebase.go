package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"
)

// Firebase names the Firebase project of the people; the Admin SDK also reads some of them.
type Firebase struct {
	ProjectID    string `env:"FIREBASE_PROJECT_ID"`
	APIKey       string `env:"FIREBASE_API_KEY"`
	EmulatorHost string `env:"FIREBASE_AUTH_EMULATOR_HOST"`
	Credentials  string `env:"GOOGLE_APPLICATION_CREDENTIALS"` // a file

	CheckEvery time.Duration `env:"-"` // the provider's own if 0
}

var firebaseProject = regexp.MustCompile(`^[a-z0-9][a-z0-9.:-]*$`)

func (s Firebase) check(environment string) error {
	if s.EmulatorHost != "" && environment == "production" {
		return errors.New(
			"FIREBASE_AUTH_EMULATOR_HOST must not be set in production: anyone can forge the emulator's tokens")
	}
	if s.ProjectID != "" && !firebaseProject.MatchString(s.ProjectID) {
		return fmt.Errorf("FIREBASE_PROJECT_ID must be the id of a Firebase project, such as my-project-1234; it is %q",
			s.ProjectID)
	}
	if s.ProjectID != "" && s.Credentials != "" {
		text, err := os.ReadFile(s.Credentials)
		if err != nil {
			return fmt.Errorf("GOOGLE_APPLICATION_CREDENTIALS: %w", err)
		}
		if !json.Valid(text) {
			return fmt.Errorf("GOOGLE_APPLICATION_CREDENTIALS must name the JSON file of a service account; %s is none",
				s.Credentials)
		}
	}
	return nil
}
