package http

// nosniffHeader is a header of every response, in net/http's canonical form.
const nosniffHeader = "X-Content-Type-Options"

// nosniff is the value of nosniffHeader. It must not be changed.
var nosniff = []string{"nosniff"}

// hstsHeader is a header of every response in production on https, in net/http's canonical form.
const hstsHeader = "Strict-Transport-Security"

// hsts tells browsers to use only https for this host for a year. It must not be changed.
var hsts = []string{"max-age=31536000"}
