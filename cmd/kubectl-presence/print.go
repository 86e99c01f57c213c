package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
)

// structured writes a value as JSON or YAML, where that is asked for.
func structured(out io.Writer, format string, value any) (written bool, err error) {
	var raw []byte
	switch format {
	case formatJSON:
		raw, err = json.MarshalIndent(value, "", "    ")
		raw = append(raw, '\n')
	case formatYAML:
		raw, err = yaml.Marshal(value)
	default:
		return false, nil
	}
	if err == nil {
		_, err = out.Write(raw)
	}
	return true, err
}

// table writes rows in columns, as kubectl does, with what starts each line.
func table(out io.Writer, rows [][]string) error {
	writer := printers.GetNewTabWriter(out)
	for _, row := range rows {
		if _, err := fmt.Fprintln(writer, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return writer.Flush()
}

// The colours, which never say anything that the text does not.
const (
	red    = "\x1b[31m"
	plain  = "\x1b[0m"
	yellow = "\x1b[33m"
)

// coloured tells whether out is a terminal whose user has nothing against colours.
func coloured(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd()))
}

// paint colours the lines of a text, where out shows colours.
func paint(out io.Writer, text string, colour func(line string) string) error {
	if coloured(out) {
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			if c := colour(line); c != "" {
				lines[i] = c + line + plain
			}
		}
		text = strings.Join(lines, "\n")
	}
	_, err := io.WriteString(out, text)
	return err
}

// age is how long ago a moment was, as kubectl writes it.
func age(moment *metav1.Time, now time.Time) string {
	if moment == nil || moment.IsZero() {
		return "-"
	}
	return duration.HumanDuration(now.Sub(moment.Time))
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
