package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAPageShowsNoMarkupOfOthers(t *testing.T) {
	w := httptest.NewRecorder()
	Page{Title: "T", Problem: "<script>x</script>", Button: "B"}.Write(w, http.StatusUnprocessableEntity)
	body, h := w.Body.String(), w.Result().Header
	if w.Code != http.StatusUnprocessableEntity || strings.Contains(body, "<script>") ||
		!strings.Contains(body, "&lt;script&gt;") ||
		!strings.Contains(body, `name="password"`) {
		t.Errorf("%d %s", w.Code, body)
	}
	if h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") != "no-store" ||
		!strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("the headers are %v", h)
	}
}

func TestAPageWithoutAButtonHasNoForm(t *testing.T) {
	w := httptest.NewRecorder()
	Page{Title: "T", Text: "done", NewPassword: true}.Write(w, http.StatusOK)
	if body := w.Body.String(); strings.Contains(body, "<form") || !strings.Contains(body, "<p>done</p>") {
		t.Error(body)
	}
}

func TestTheFormOfASandboxAsksForANameThatIsNotKnown(t *testing.T) {
	for _, known := range []bool{true, false} {
		w := httptest.NewRecorder()
		Sandbox("<ada>@example.com", known, 14, 8).Write(w, http.StatusOK)
		body := w.Body.String()
		if strings.Contains(body, `name="name"`) == known || !strings.Contains(body, `name="newPassword"`) ||
			!strings.Contains(body, "for 14 days") ||
			!strings.Contains(body, "at least 8 characters") ||
			!strings.Contains(body, "&lt;ada&gt;@example.com") {
			t.Error(body)
		}
	}
}

func TestReadForm(t *testing.T) {
	submit := func(body string) (Form, error) {
		r := httptest.NewRequest(http.MethodPost, "/reset-password?token=a%2Bb", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return ReadForm(httptest.NewRecorder(), r)
	}
	if form, err := submit("password=p&newPassword=n+n&name=Ada+L&token=other"); err != nil ||
		form != (Form{"a+b", "Ada L", "p", "n n"}) {
		t.Errorf("%+v, %v", form, err)
	}
	for _, body := range []string{"password=" + strings.Repeat("x", maxForm), "password=%zz"} {
		if form, err := submit(body); err == nil {
			t.Errorf("%.20s is read as %+v", body, form)
		}
	}
}
