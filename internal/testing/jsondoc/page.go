package jsondoc

import (
	"fmt"
	"strings"
)

// Page writes the sections of the page: a table of fields for each object, then the values.
func (d *Docs) Page() (string, error) {
	objects, err := d.Objects()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, o := range objects {
		fmt.Fprintf(&b, "## %s\n\n", o.Title)
		if o.At != "" {
			fmt.Fprintf(&b, "%s\n\n", o.At)
		}
		if o.Doc != "" {
			fmt.Fprintf(&b, "%s\n\n", o.Doc)
		}
		for _, e := range o.Embeds {
			fmt.Fprintf(&b, "It also has all fields of [%s](#%s).\n\n", strings.ToLower(e.Title[:1])+e.Title[1:], anchor(e.Title))
		}
		b.WriteString("| field | type | default | range | what it is |\n|---|---|---|---|---|\n")
		if o.Inline[0] != "" {
			fmt.Fprintf(&b, "| `%s` | text | required | | `%s` |\n", o.Inline[0], o.Inline[1])
		}
		for i := range o.Fields {
			f := &o.Fields[i]
			fmt.Fprintf(&b, "| <a id=\"%s\"></a>`%s` | %s | %s | %s | %s |\n",
				o.Anchor(f), f.Name, d.kindOf(f), cell(f.Default+f.Required), f.Range(), cell(f.Text))
		}
		b.WriteByte('\n')
	}
	for _, v := range d.Values {
		c, err := d.Source.of(v.Type)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "## %s\n\n%s\n\n", v.Title, strings.Replace(c.doc, v.Type.Name()+" ", v.Subj+" ", 1))
	}
	return b.String(), nil
}

// cell escapes what would end a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
