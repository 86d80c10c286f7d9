# shellcheck shell=bash
# Sourced by ./lockstep: the artefacts of a release. Reads ROOT, BIN and LOG. Calls the caller's say, fail, open_log,
# to_log, build_command_line and install_packages.

dist_usage() {
  cat <<'USAGE'
Usage: ./lockstep dist [--out=DIR] [--no-image]

Makes the artefacts of a release from the tree as it is. Two calls on one commit and one system make the same bytes.
  lockstep-VERSION-linux-x86_64.tar.gz   bin/lockstep and its libraries, for any folder; needs glibc 2.34 and the C++
                                         runtime of GCC 11: Debian 12, Ubuntu 22.04, RHEL 9 or newer
  lockstep_VERSION_amd64.deb             for this release of Debian, with systemd units lockstep-chief@ and lockstep-worker@
  lockstep-VERSION-image.tar             an image for docker load
  lockstep-VERSION.cdx.json              the packages that the libraries come from, as CycloneDX
  SHA256SUMS
  --out=DIR    where they go; dist when absent
  --no-image   makes no image; without it Docker must run
Exit codes: 0 done; 1 something could not be made; 2 wrong arguments.
USAGE
}

# stage_programs FOLDER: fills FOLDER with the contents of the tarball.
stage_programs() {
  "${ROOT}/docker/collect.sh" --system_cxx "$1"
  mkdir -p "$1/share/doc/lockstep" "$1/share/lockstep" "$1/share/man/man1" "$1/share/bash-completion/completions"
  cp -r "${ROOT}/docs" "${ROOT}/README.md" "${ROOT}/CHANGELOG.md" "${ROOT}/LICENSE" "$1/share/doc/lockstep"
  (cd "${ROOT}" && find proto -name '*.proto' -exec cp --parents -t "$1/share/lockstep" {} +)
  "$1/bin/lockstep" completion bash >"$1/share/bash-completion/completions/lockstep"
  "${ROOT}/tools/write_release.py" man "$1/bin/lockstep" "${VERSION}" "${SOURCE_DATE_EPOCH}" >"$1/share/man/man1/lockstep.1"
}

# set_times FOLDER: gives everything in the folder the time of the release, and the same modes on every machine.
set_times() {
  chmod -R u=rwX,go=rX "$1"
  find "$1" -exec touch --no-dereference --date="@${SOURCE_DATE_EPOCH}" {} +
}

make_tarball() {
  local name="lockstep-${VERSION}-linux-x86_64"
  mkdir "$1/${name}"
  stage_programs "$1/${name}"
  set_times "$1/${name}"
  tar -C "$1" --sort=name --owner=0 --group=0 --numeric-owner --format=gnu -c "${name}" | gzip -9n >"$2/${name}.tar.gz"
}

# Debian's tools want an address. Lockstep has none, and this domain is reserved.
MAINTAINER="The Lockstep developers <lockstep@example.org>"

# write_deb_documents FOLDER: writes the changelog and the licence in the formats of Debian.
write_deb_documents() {
  printf 'lockstep (%s) unstable; urgency=medium\n\n  * CHANGELOG.md.gz lists the changes.\n\n -- %s  %s\n' "${VERSION}" \
    "${MAINTAINER}" "$(date --utc --rfc-email --date="@${SOURCE_DATE_EPOCH}")" | gzip -9nc >"$1/changelog.gz"
  gzip -9nc "${ROOT}/CHANGELOG.md" >"$1/CHANGELOG.md.gz"
  cat >"$1/copyright" <<COPYRIGHT
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Lockstep

Files: *
Copyright: $(date --utc --date="@${SOURCE_DATE_EPOCH}" +%Y) the Lockstep developers
License: Apache-2.0
 On Debian systems, the text of the license is in /usr/share/common-licenses/Apache-2.0.
COPYRIGHT
}

# make_deb WORK OUT: makes the Debian package, which takes its libraries from Debian.
make_deb() {
  local tree="$1/deb" stage="$1/lockstep-${VERSION}-linux-x86_64" depends
  mkdir -p "${tree}/DEBIAN" "${tree}/usr/bin" "${tree}/usr/share/doc/lockstep" "${tree}/usr/share/man/man1" \
    "${tree}/lib/systemd/system" "$1/debian"
  cp "${stage}/bin/lockstep" "${tree}/usr/bin"
  install -m 644 "${ROOT}/deploy/release"/*.service "${tree}/lib/systemd/system"
  cp -r "${stage}/share/bash-completion" "${stage}/share/lockstep" "${tree}/usr/share"
  gzip -9nc "${stage}/share/man/man1/lockstep.1" >"${tree}/usr/share/man/man1/lockstep.1.gz"
  write_deb_documents "${tree}/usr/share/doc/lockstep"
  printf 'Source: lockstep\n\nPackage: lockstep\nArchitecture: amd64\n' >"$1/debian/control"
  depends="$(cd "$1" && dpkg-shlibdeps -O -e"${tree}/usr/bin/lockstep" 2>>"${LOG}")" || return
  cat >"${tree}/DEBIAN/control" <<CONTROL
Package: lockstep
Version: ${VERSION}
Architecture: amd64
Maintainer: ${MAINTAINER}
Section: science
Priority: optional
Installed-Size: $(du -k -s "${tree}/usr" | cut -f1)
Depends: ${depends#shlibs:Depends=}
Description: Elastic, fault-tolerant, reproducible training
 One chief and any number of workers train a model with synchronous steps over
 gRPC. The final weights are the same, bit for bit, with any number of workers,
 kills of workers and chief, restarts and resumes.
CONTROL
  set_times "${tree}"
  to_log dpkg-deb --root-owner-group -Zxz --build "${tree}" "$2/lockstep_${VERSION}_amd64.deb"
}

make_image() {
  local base=debian:bookworm-slim stage="$1/image"
  to_log "${ROOT}/docker/make_base.sh" "${base}" && docker save "${base}" -o "$1/base.tar" || return
  mkdir -p "${stage}/logdir"
  "${ROOT}/docker/collect.sh" "${stage}/usr/local"
  set_times "${stage}"
  "${ROOT}/tools/write_release.py" image "$1/base.tar" "${stage}" "${VERSION}" "$(git -C "${ROOT}" rev-parse HEAD)" \
    "${SOURCE_DATE_EPOCH}" "$2/lockstep-${VERSION}-image.tar"
}

# Makes everything in a separate folder, so that a failure leaves the old artefacts intact.
make_artefacts() {
  local work="$1" out="$1/out"
  mkdir "${out}"
  say "making the tarball"
  make_tarball "${work}" "${out}" || fail 1 "cannot make the tarball; the log is ${LOG}"
  say "making the Debian package"
  make_deb "${work}" "${out}" || fail 1 "cannot make the Debian package; the log is ${LOG}"
  "${ROOT}/tools/write_release.py" sbom "${work}/lockstep-${VERSION}-linux-x86_64/lib" "${VERSION}" \
    "${SOURCE_DATE_EPOCH}" >"${out}/lockstep-${VERSION}.cdx.json" || fail 1 "cannot write the list of packages"
  if [[ "$2" == yes ]]; then
    say "making the image"
    make_image "${work}" "${out}" || fail 1 "cannot make the image; the log is ${LOG}"
  fi
  (cd "${out}" && sha256sum ./* | sed 's# \./# #' >"${work}/SHA256SUMS" && mv "${work}/SHA256SUMS" .)
}

build_dist() {
  local out="${PWD}/dist" image=yes word work
  for word in "$@"; do
    case "${word}" in
      --out=?*) out="$(realpath -m -- "${word#--out=}")" ;;
      --no-image) image=no ;;
      *) fail 2 "dist takes --out=DIR and --no-image, not '${word}'" ;;
    esac
  done
  build_command_line
  open_log dist
  VERSION="$(sed -nE 's/^constexpr char kVersion\[\] = "(.*)";/\1/p' "${ROOT}/common/base/version.h")"
  SOURCE_DATE_EPOCH="$(git -C "${ROOT}" log -1 --format=%ct)"
  export SOURCE_DATE_EPOCH
  work="$(mktemp -d)"
  # shellcheck disable=SC2064
  trap "rm -rf '${work}'" EXIT
  make_artefacts "${work}" "${image}"
  mkdir -p "${out}" && cp "${work}/out"/* "${out}" || fail 1 "cannot write to ${out}"
  (cd "${out}" && ls -l lockstep* SHA256SUMS)
}
