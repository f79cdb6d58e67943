package rules

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

// Every operator of facts is in the table once.
func TestTheTableHasEveryOperator(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../rule.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Operator" {
				declared[spec.Values[0].(*ast.BasicLit).Value] = true
			}
		}
		return true
	})
	for _, o := range Operators() {
		quoted := `"` + string(o.Name) + `"`
		if !declared[quoted] {
			t.Errorf("%s stands in the table twice, or is no operator of facts", o.Name)
		}
		delete(declared, quoted)
		if found, ok := Find(o.Name); !ok || found != o {
			t.Errorf("%s is found as %v", o.Name, found)
		}
	}
	for name := range declared {
		t.Errorf("%s is not in the table", name)
	}
	if _, ok := Find("like"); ok {
		t.Error("an operator that does not exist is found")
	}
}

func TestValuesOfEachKind(t *testing.T) {
	values := []string{
		`"text"`,
		`"2026-03-14T15:09:26Z"`,
		`"1.2.3"`,
		`"\u0031.2.3"`,
		`-1.5`,
		`true`,
		`null`,
		`[]`,
		`{}`,
		``,
	}
	for kind, good := range map[Kind][]string{
		NoValue: values[:9],
		Scalar:  values[:6],
		Text:    values[:4],
		Pattern: values[:4],
		Number:  {`-1.5`},
		Time:    {`"2026-03-14T15:09:26Z"`},
		Version: {`"1.2.3"`, `"\u0031.2.3"`},
	} {
		want := map[string]bool{}
		for _, value := range good {
			want[value] = true
		}
		for _, value := range values {
			if err := CheckValue(kind, json.RawMessage(value)); (err == nil) != want[value] {
				t.Errorf("%s as a value of kind %d: %v", value, kind, err)
			}
		}
	}
}
