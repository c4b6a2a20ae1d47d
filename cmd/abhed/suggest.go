package main

import (
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// unknownFlag adds the nearest known flag to the error of an unknown one.
func unknownFlag(c *cobra.Command, err error) error {
	var unknown interface {
		error
		GetSpecifiedName() string
		GetSpecifiedShortnames() string
	}
	if !errors.As(err, &unknown) || !strings.HasPrefix(err.Error(), "unknown flag") {
		return err
	}
	known := flag.NewFlagSet("", flag.ContinueOnError)
	c.Flags().CopyToGoFlagSet(known)
	var names []string
	known.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	if name := nearest(unknown.GetSpecifiedName(), names); name != "" {
		return fmt.Errorf("%w; did you mean --%s?", err, name)
	}
	return err
}

// subcommands refuses what is no subcommand, with the nearest one.
func subcommands(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	text := "expected one of " + strings.Join(names, ", ")
	if name := nearest(args[0], names); name != "" {
		text = "did you mean " + name + "?"
	}
	return fmt.Errorf("unknown command %q of %q: %s", args[0], c.CommandPath(), text)
}

// nearest returns the one of names that was probably meant, or "". The library of the
// command line measures names of commands alone, so the names are made commands.
func nearest(name string, names []string) string {
	menu := &cobra.Command{}
	for _, n := range names {
		menu.AddCommand(&cobra.Command{Use: n, Run: func(*cobra.Command, []string) {}})
	}
	for menu.SuggestionsMinimumDistance = 1; menu.SuggestionsMinimumDistance <= 2; menu.SuggestionsMinimumDistance++ {
		if found := menu.SuggestionsFor(name); len(found) > 0 {
			return found[0]
		}
	}
	return ""
}
