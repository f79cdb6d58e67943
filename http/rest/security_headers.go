package rest

// NosniffHeader is a header of every response, in net/http's canonical form.
const NosniffHeader = "X-Content-Type-Options"

// Nosniff is the value of NosniffHeader. It must not be changed.
var Nosniff = []string{"nosniff"}

// hstsHeader is a header of every response in production on https, in net/http's canonical form.
const hstsHeader = "Strict-Transport-Security"

// hsts tells browsers to use only https for this host for a year. It must not be changed.
var hsts = []string{"max-age=31536000"}
