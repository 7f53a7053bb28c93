package main

import (
	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook/internal/gateway"
)

// newDemoGateway is the payment service of the demo, as a process of its own.
func newDemoGateway(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "demo-gateway", Short: textDemoGateway, Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return gateway.Main(cmd.Context(), args, a.Now, a.Stdout)
		},
	}
}
