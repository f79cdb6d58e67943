package commands

import "strings"

const maxDeviceToken = 1024 // characters

// CheckDevice tells all that is wrong with a device that notifications are to be pushed to, nil where nothing is.
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
