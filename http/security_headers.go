package http

// nosniffHeader is in every answer, as net/http keeps its name.
const nosniffHeader = "X-Content-Type-Options"

// nosniff is the value of nosniffHeader. It must not be changed.
var nosniff = []string{"nosniff"}

// hstsHeader is in every answer of production on https, as net/http keeps its name.
const hstsHeader = "Strict-Transport-Security"

// hsts tells browsers to call this host by https alone for a year. It must not be changed.
var hsts = []string{"max-age=31536000"}
