#!/usr/bin/env bash
# setup.sh [redis-server|postgres|mariadbd|prometheus|protoc|cc|make|chromium|npm|lintian|python-client|typescript-client]...:
# makes sure that programs and packages the build needs are installed. What is missing is
# installed through apt-get when it is there and we are root; else the script says
# what to install and fails. What typescript-client needs from npm is installed into
# its folder.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
typescript=$root/clients/typescript

packages_of() {
  case $1 in
    redis-server) echo redis-server ;;
    postgres) echo postgresql ;;
    mariadbd) echo mariadb-server ;;
    prometheus) echo prometheus ;; # with promtool
    protoc) echo protobuf-compiler libprotobuf-dev ;; # the latter has the well-known types
    cc) echo gcc libc6-dev ;;
    make) echo make ;;
    chromium) echo chromium fonts-dejavu-core ;; # without a font, text is drawn as boxes
    npm) echo npm ;;
    lintian) echo lintian ;;
    python-client) echo python3 python3-grpcio python3-protobuf python3-pip python3-setuptools python3-wheel mypy ;;
    typescript-client) echo nodejs npm ;;
    *)
      echo "setup: unknown program '$1'" >&2
      return 2
      ;;
  esac
}

has() {
  case $1 in
    cc) # what the race detector links with; CC may carry flags after the program
      local cc
      cc=$(go env CC)
      command -v "${cc%% *}" >/dev/null
      ;;
    python-client) # of the distribution: a python3 earlier in PATH may lack the packages
      command -v mypy >/dev/null && /usr/bin/python3 -c 'import sys; from importlib.util import find_spec
sys.exit(not all(map(find_spec, ("google.protobuf", "grpc", "pip", "setuptools", "wheel"))))' 2>/dev/null
      ;;
    postgres | mariadbd) # Debian has database servers outside the PATH of users
      command -v "$1" >/dev/null || compgen -G "/usr/lib/postgresql/*/bin/$1" >/dev/null || [ -x "/usr/sbin/$1" ]
      ;;
    typescript-client) command -v node >/dev/null && command -v npm >/dev/null ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

missing=()
packages=()
for name in "$@"; do
  found=$(packages_of "$name")
  if ! has "$name"; then
    missing+=("$name")
    read -ra found <<<"$found"
    packages+=("${found[@]}")
  fi
done

if [ ${#missing[@]} -gt 0 ]; then
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
    if ! has "$name"; then
      echo "setup: ${packages[*]} is installed, but $name is not in PATH" >&2
      exit 1
    fi
  done
fi

# npm leaves this file behind; it is as new as what is installed.
lock=$typescript/node_modules/.package-lock.json
if [[ " $* " == *' typescript-client '* && ! $lock -nt $typescript/package-lock.json ]]; then
  echo "setup: installing npm packages" >&2
  (cd "$typescript" && npm ci --ignore-scripts --no-audit --no-fund --prefer-offline --loglevel=error) </dev/null >&2
  touch "$lock"
fi
