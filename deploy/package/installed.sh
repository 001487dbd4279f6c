#!/bin/sh
# Runs after an installation or an upgrade. A running node is not restarted: the
# administrator chooses when.
set -e
if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
