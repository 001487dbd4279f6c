package main

import "runtime/debug"

// commitLength is the length to which a commit's hash is cut.
const commitLength = 12

// version returns the version of this build, with its commit and the commit's date if
// the build has them.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	text := info.Main.Version
	if text == "" {
		text = "unknown"
	}
	of := map[string]string{}
	for _, setting := range info.Settings {
		of[setting.Key] = setting.Value
	}
	commit, date := of["vcs.revision"], of["vcs.time"]
	if commit == "" {
		return text
	}
	text += " (commit " + commit[:min(len(commit), commitLength)]
	if of["vcs.modified"] == "true" {
		text += " with changes"
	}
	if date != "" {
		text += ", " + date
	}
	return text + ")"
}
