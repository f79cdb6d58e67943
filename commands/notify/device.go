package notify

import (
	"strings"

	"flagledger/commands"
)

const maxDeviceToken = 1024 // characters

// CheckDevice returns an error that names all wrong fields of a device for push notifications, or nil.
func CheckDevice(token, name, kind string) error {
	wrong := commands.FieldErrors{}
	commands.CheckText(wrong, "deviceToken", token, 1, maxDeviceToken)
	wrong.Check(
		len(token) <= maxDeviceToken && !strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }),
		"deviceToken", "must be printable ASCII without spaces",
	)
	commands.CheckText(wrong, "deviceName", name, 0, maxNotificationWord)
	wrong.Check(kind != "", "deviceType", "is required")
	wrong.Check(kind == "ios" || kind == "android" || kind == "web", "deviceType", "must be one of ios, android, web")
	return wrong.Err()
}
