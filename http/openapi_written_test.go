package http_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	flagledgerhttp "flagledger/http"
)

var update = flag.Bool("update", false, "write http/dashboard/openapi.json")

// The committed document equals the code's. The dashboard's types are generated from it, and it shows changes of the
// API in reviews.
func TestWrittenOpenAPIDocumentIsThatOfTheCode(t *testing.T) {
	t.Parallel()
	const file = "dashboard/openapi.json"
	var document bytes.Buffer
	if err := json.Indent(&document, flagledgerhttp.Document(), "", " "); err != nil {
		t.Fatal(err)
	}
	document.WriteByte('\n')
	if *update {
		if err := os.WriteFile(file, document.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if written, err := os.ReadFile(file); err != nil || !bytes.Equal(written, document.Bytes()) {
		t.Errorf("%s is not what the code says (%v); go test ./http -run TestWrittenOpenAPI -update writes it", file, err)
	}
}
