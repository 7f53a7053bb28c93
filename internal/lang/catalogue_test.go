package lang

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/daybook-run/daybook"
)

var placeholder = regexp.MustCompile(`\{[a-z_]+\}`)

func placeholders(text string) []string {
	found := placeholder.FindAllString(text, -1)
	slices.Sort(found)
	return slices.Compact(found)
}

// base is a name without its plural form.
func base(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, "/one"), "/other")
}

func TestCataloguesHaveTheSameNamesAndPlaceholders(t *testing.T) {
	for name, text := range en {
		other, ok := zh[name]
		if strings.HasSuffix(name, "/one") {
			if ok {
				t.Errorf("%s: Chinese has no plurals", name)
			}
			if _, ok := en[base(name)+"/other"]; !ok {
				t.Errorf("%s without /other", name)
			}
			other, ok = zh[base(name)+"/other"]
		}
		if !ok {
			t.Errorf("%s is missing in zh.go", name)
			continue
		}
		if a, b := placeholders(text), placeholders(other); !slices.Equal(a, b) {
			t.Errorf("%s: placeholders %v in English, %v in Chinese", name, a, b)
		}
		if strings.HasSuffix(name, "/other") && !strings.Contains(text, "{n}") {
			t.Errorf("%s has plurals and does not say {n}", name)
		}
	}
	for name := range zh {
		if _, ok := en[name]; !ok {
			t.Errorf("%s is missing in en.go", name)
		}
	}
}

func TestCataloguesStandInTheSameOrder(t *testing.T) {
	a, b := order(t, "en.go"), order(t, "zh.go")
	a = slices.DeleteFunc(a, func(name string) bool { return strings.HasSuffix(name, "/one") })
	if !slices.Equal(a, b) {
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				t.Fatalf("entry %d is %s in en.go and %s in zh.go", i, a[i], b[i])
			}
		}
		t.Fatalf("%d entries and %d", len(a), len(b))
	}
}

// order returns the names of a catalogue as they stand in its file.
func order(t *testing.T, file string) (names []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if kv, ok := n.(*ast.KeyValueExpr); ok {
			name, err := strconv.Unquote(kv.Key.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
		return true
	})
	return names
}

// stays is what is not translated: commands with their flags, names of the file, priorities, numbers and names of tools.
var stays = regexp.MustCompile(`daybook [a-z -]+|--[a-z-]+|effects: repeatable|\bP[01]\b|\bcron\b|\bwebhook\b|\bnot-done\b|\bAPI\b|^once$|\b24\b`)

var englishWord = regexp.MustCompile(`[A-Za-z]{2,}`)

func TestChineseHasNoEnglishLeft(t *testing.T) {
	for name, text := range zh {
		rest := stays.ReplaceAllString(placeholder.ReplaceAllString(text, ""), "")
		if words := englishWord.FindAllString(rest, -1); len(words) > 0 {
			t.Errorf("%s: %q has %q", name, text, words)
		}
		if !strings.ContainsFunc(text, han) && strings.ContainsFunc(en[name], unicode.IsLetter) && rest == stays.ReplaceAllString(placeholder.ReplaceAllString(en[name], ""), "") &&
			englishWord.MatchString(rest) {
			t.Errorf("%s is not translated: %q", name, text)
		}
	}
}

// typography returns what is wrong with the spacing and the punctuation of a Chinese text.
func typography(text string) string {
	runes := []rune(placeholder.ReplaceAllString(text, "\x00"))
	for i, r := range runes {
		before, after := rune(0), rune(0)
		if i > 0 {
			before = runes[i-1]
		}
		if i+1 < len(runes) {
			after = runes[i+1]
		}
		near := han(before) || han(after)
		switch {
		case strings.ContainsRune(",;:!?()", r) && near:
			return "half-width " + string(r)
		case r == '.' && han(before):
			return "half-width ."
		case apart(before, r):
			return "no space before " + string(r)
		case r == ' ' && (han(before) && after == 0 && i+1 < len(runes) || before == 0 && i > 0 && han(after)):
			return "a space between Chinese and a placeholder: the printer puts it"
		case r == ' ' && han(before) && han(after):
			return "a space between Chinese characters"
		case r == ' ' && (full(before) || full(after)) && !(after == ' ' || before == ' '):
			return "a space beside full-width punctuation"
		}
	}
	return ""
}

func full(r rune) bool { return strings.ContainsRune("，。：；！？（）、“”", r) }

func TestChineseTypography(t *testing.T) {
	for name, text := range zh {
		if fault := typography(text); fault != "" {
			t.Errorf("%s: %q: %s", name, text, fault)
		}
	}
	for text, bad := range map[string]bool{
		"死信,重放": true, "死信，重放": false, "第3次": true, "第 3 次": false, "第{n}次": false, "第 {n} 次": true, "完成.": true,
		"重放： 好": true, "（完成）": false, "(完成)": true, "死 信": true, "执行  daybook check": false, "[P0] 进入": false,
	} {
		if got := typography(text) != ""; got != bad {
			t.Errorf("%q: wrong %v, want %v", text, got, bad)
		}
	}
}

func TestEveryStateReasonAndKindHasWords(t *testing.T) {
	for _, s := range daybook.States {
		if !For(Chinese).Has("state." + string(s)) {
			t.Errorf("no word for the state %s", s)
		}
	}
	for kind, prefix := range map[string]string{"Reason": "reason.", "LetterState": "letter.", "LetterKind": "letter kind.", "TriggerOutcome": "outcome.", "Source": "source.", "AlertKind": "kind."} {
		values := constants(t, kind)
		if len(values) < 3 {
			t.Errorf("%d constants of %s", len(values), kind)
		}
		for _, v := range values {
			if v != "" && !For(Chinese).Has(prefix+v) {
				t.Errorf("no word for the %s %q", kind, v)
			}
		}
	}
}

// constants returns the values of the string constants of a type of the root package.
func constants(t *testing.T, kind string) (values []string) {
	t.Helper()
	files, err := filepath.Glob("../../*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
				if id, ok := v.Type.(*ast.Ident); ok && id.Name == kind {
					if lit, ok := v.Values[0].(*ast.BasicLit); ok {
						s, err := strconv.Unquote(lit.Value)
						if err != nil {
							t.Fatal(err)
						}
						values = append(values, s)
					}
				}
			}
			return true
		})
	}
	return values
}

// TestNoNameIsUnused scans the module for the names. A name may be put together from a part that ends in "." or " " and
// stands in the source.
func TestNoNameIsUnused(t *testing.T) {
	used := map[string]bool{}
	var parts []string
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != "../.." && (strings.HasPrefix(name, ".") || name == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || filepath.Dir(path) == "../../internal/lang" && (name == "en.go" || name == "zh.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
		if err != nil {
			return nil // another test's business
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if s, err := strconv.Unquote(lit.Value); err == nil {
					used[s] = true
					if strings.Contains(s, ".") && (strings.HasSuffix(s, ".") || strings.HasSuffix(s, " ")) && len(s) < 40 {
						parts = append(parts, s)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range en {
		name = base(name)
		if !used[name] && !slices.ContainsFunc(parts, func(p string) bool { return strings.HasPrefix(name, p) && len(p) > 3 }) {
			t.Errorf("%s is used by nobody", name)
		}
	}
}
