#!/bin/sh
# Runs before a removal or an upgrade. Only a removal stops the units: "remove" from
# dpkg, 0 from rpm.
set -e
case $1 in
remove | 0)
  if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
    systemctl disable --now wakebell.service wakebell-beat.service wakebell-dash.service
  fi
  ;;
esac
