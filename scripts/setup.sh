#!/usr/bin/env bash
# setup.sh [redis-server|postgres|mariadbd|protoc|cc|make]...: makes sure that programs the
# build needs are installed. What is missing is installed through apt-get when
# it is there and we are root; else the script says what to install and fails.
set -euo pipefail

# Debian has database servers outside the PATH of users.
server() {
  local found
  for found in "$(command -v "$1")" /usr/lib/postgresql/*/bin/"$1" /usr/sbin/"$1"; do
    if [ -x "$found" ]; then
      echo "$found"
      return
    fi
  done
  echo "$1"
}

command_of() {
  case $1 in
    cc) go env CC ;; # what the race detector links with
    postgres | mariadbd) server "$1" ;;
    *) echo "$1" ;;
  esac
}

packages_of() {
  case $1 in
    redis-server) echo redis-server ;;
    postgres) echo postgresql ;;
    mariadbd) echo mariadb-server ;;
    protoc) echo protobuf-compiler libprotobuf-dev ;; # the latter has the well-known types
    cc) echo gcc libc6-dev ;;
    make) echo make ;;
    *)
      echo "setup: unknown program '$1'" >&2
      return 2
      ;;
  esac
}

missing=()
packages=()
for name in "$@"; do
  found=$(packages_of "$name")
  program=$(command_of "$name")
  # CC may carry flags after the program.
  if ! command -v "${program%% *}" >/dev/null; then
    missing+=("$name")
    read -ra found <<<"$found"
    packages+=("${found[@]}")
  fi
done
if [ ${#missing[@]} -eq 0 ]; then
  exit 0
fi

if ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
  echo "setup: not installed: ${missing[*]}" >&2
  echo "setup: install it (Debian and Ubuntu: sudo apt-get install ${packages[*]}) and run this again" >&2
  exit 1
fi

echo "setup: installing ${packages[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
apt=(apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120)
{
  "${apt[@]}" update
  "${apt[@]}" install --yes --no-install-recommends "${packages[@]}"
} </dev/null >&2

for name in "${missing[@]}"; do
  program=$(command_of "$name")
  if ! command -v "${program%% *}" >/dev/null; then
    echo "setup: ${packages[*]} is installed, but $name is not in PATH" >&2
    exit 1
  fi
done
