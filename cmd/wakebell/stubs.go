package main

import "github.com/spf13/cobra"

func (a *app) demoCommand() *cobra.Command   { return &cobra.Command{Use: "demo"} }
func (a *app) lsCommand() *cobra.Command     { return &cobra.Command{Use: "ls"} }
func (a *app) getCommand() *cobra.Command    { return &cobra.Command{Use: "get"} }
func (a *app) cancelCommand() *cobra.Command { return &cobra.Command{Use: "cancel"} }
func (a *app) topicsCommand() *cobra.Command { return &cobra.Command{Use: "topics"} }
func (a *app) deadCommand() *cobra.Command   { return &cobra.Command{Use: "dead"} }
