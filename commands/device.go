package commands

import "strings"

const maxDeviceToken = 1024 // characters

// CheckDevice returns an error that names all wrong fields of a device for push notifications, or nil.
func CheckDevice(token, name, kind string) error {
	wrong := fields{}
	checkText(wrong, "deviceToken", token, 1, maxDeviceToken)
	wrong.check(
		len(token) <= maxDeviceToken && !strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }),
		"deviceToken", "must be printable ASCII without spaces",
	)
	checkText(wrong, "deviceName", name, 0, maxNotificationWord)
	wrong.check(kind != "", "deviceType", "is required")
	wrong.check(kind == "ios" || kind == "android" || kind == "web", "deviceType", "must be one of ios, android, web")
	return wrong.err()
}
