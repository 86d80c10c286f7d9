#!/usr/bin/env bash
# Makes sure that the base image of docker/Dockerfile exists on this engine: keeps an existing one, or pulls it, or
# builds it from Debian's own archive with debootstrap (root, about half a minute).
# Usage: docker/make_base.sh [IMAGE]   (debian:bookworm-slim)
set -euo pipefail

image="${1:-debian:bookworm-slim}"
mirror="${LOCKSTEP_DEBIAN_MIRROR:-http://deb.debian.org/debian}"

if docker image inspect "${image}" >/dev/null 2>&1; then
  exit 0
fi
if timeout 120 docker pull --quiet "${image}" >/dev/null 2>&1; then
  echo "Pulled ${image}."
  exit 0
fi
if ! command -v debootstrap >/dev/null; then
  echo "${image} cannot be pulled and debootstrap is not installed. Install it with: apt-get install debootstrap" >&2
  exit 2
fi
if [[ "$(id -u)" != 0 ]]; then
  echo "${image} cannot be pulled, and debootstrap needs root to make it. Run: sudo ${0} ${image}" >&2
  exit 2
fi

work="$(mktemp -d)"
trap 'rm -rf --one-file-system "${work}"' EXIT
echo "Making ${image} with debootstrap ..."
if ! debootstrap --variant=minbase bookworm "${work}/root" "${mirror}" >"${work}/log" 2>&1; then
  tail -n 20 "${work}/log" >&2
  exit 1
fi
cat >"${work}/root/etc/apt/sources.list" <<SOURCES
deb ${mirror} bookworm main
deb ${mirror} bookworm-updates main
deb ${mirror}-security bookworm-security main
SOURCES
# The published slim image leaves these files out too.
rm -rf "${work}/root/var/cache/apt/"* "${work}/root/var/lib/apt/lists/"* "${work}/root/usr/share/doc/"* \
  "${work}/root/usr/share/man/"* "${work}/root/usr/share/locale/"* "${work}/root/var/log/"*.log
tar -C "${work}/root" --numeric-owner -c . |
  docker import --change 'CMD ["bash"]' --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
    - "${image}" >/dev/null
