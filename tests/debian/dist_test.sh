#!/usr/bin/env bash
# Makes the artefacts of a release twice, with the same bytes. Installs each of them in a system without a compiler, and
# trains there: the tarball in a bare Debian 12 and 13, the package in this machine's release of Debian, and the image
# if a Docker engine answers. The digest must be the one that this machine's build computes. lintian must find nothing.
# Usage: dist_test.sh LOCKSTEP CONFIG   (this machine's build; the run)
set -uo pipefail
lockstep="$(readlink -f "$1")"
config="$(readlink -f "$2")"
# shellcheck source=tests/debian/roots.sh
source "$(dirname "$0")/roots.sh"
image=()
loaded=""
if ! timeout 30 docker info >/dev/null 2>&1; then
  echo "no Docker engine answers: there is no image"
  image=(--no-image)
fi

end() {
  (cd "${WORK}/tree" && bazel --nohome_rc shutdown) >/dev/null 2>&1
  [[ -z "${loaded}" ]] || docker image rm -f "${loaded}" >/dev/null 2>&1
  cleanup
}
trap end EXIT

# dist FOLDER: Bazel keeps its output in TEST_TMPDIR, and finds this machine's objects in the cache.
dist() {
  say "./lockstep dist"
  (cd "${WORK}/tree" && ./lockstep dist --out="${WORK}/$1" "${image[@]}") >"${WORK}/dist.log" 2>&1 && return
  tail -n 40 "${WORK}/dist.log"
  exit 1
}

# Expects that the list of packages names each file in the tarball's lib.
check_sbom() {
  expect "the libraries in the list of packages" "$(tar -tzf "$1" | sed -nE 's#^[^/]+/lib/(.+)#\1#p' | sort)" \
    "$(python3 -c 'import json, sys
for package in json.load(open(sys.argv[1]))["components"]:
  for file in package["components"]: print(file["name"])' "$2" | sort)"
}

expected="$(digest_of "${lockstep}" "${config}")"
clone_tree "${WORK}/tree" || exit
dist one
dist two
expect "the bytes of the second call" "$(<"${WORK}/one/SHA256SUMS")" "$(<"${WORK}/two/SHA256SUMS")"
cd "${WORK}/one" || exit
sha256sum --quiet -c SHA256SUMS || expect "the checksums" "right" "wrong"
check_sbom lockstep-*-linux-x86_64.tar.gz lockstep-*.cdx.json

# needs PREFIX: prints the newest version with this prefix that a file of the tarball needs from the system.
needs() {
  find "${WORK}/bookworm/opt" -type f \( -path '*/bin/lockstep' -o -name '*.so.*' \) -exec objdump -p {} + |
    grep -oE "$1[0-9.]+" | sort -uV | tail -n 1
}

for suite in bookworm trixie; do
  make_root "${suite}" || exit
  cp "${config}" "${WORK}/${suite}/run.textproto"
  tar -C "${WORK}/${suite}/opt" -xzf lockstep-*-linux-x86_64.tar.gz
  trains "the tarball in a bare ${suite}" "${suite}" "$(cd "${WORK}/${suite}" && echo /opt/lockstep-*/bin/lockstep)"
done

expect "the newest glibc that the tarball needs" "GLIBC_2.34" "$(needs GLIBC_)"
expect "the newest C++ runtime that the tarball needs, of GCC 11" "GLIBCXX_3.4.29" "$(needs GLIBCXX_)"
# A runtime without the names that GCC 12 added, as in RHEL 9.
mkdir "${WORK}/bookworm/gcc11"
sed 's/GLIBCXX_3\.4\.30/GLIBCXX_9.9.99/' "${WORK}/bookworm/usr/lib/x86_64-linux-gnu/libstdc++.so.6" \
  >"${WORK}/bookworm/gcc11/libstdc++.so.6"
trains "the tarball with an older C++ runtime" bookworm "LD_LIBRARY_PATH=/gcc11 $(cd "${WORK}/bookworm" && echo /opt/lockstep-*/bin/lockstep)"

suite="$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)"
[[ -d "${WORK}/${suite}" ]] || make_root "${suite}" || exit
cp "${config}" "${WORK}/${suite}/run.textproto"
rm -rf "${WORK}/${suite}"/opt/lockstep*
cp lockstep_*_amd64.deb "${WORK}/${suite}/lockstep.deb"

# with_package WHAT COMMAND: expects no output from a command in the system that has the package.
with_package() { expect "$1" "" "$(in_root "${suite}" "$2" 2>&1 || echo "exit code $?")"; }
with_package "installing the package" \
  '{ apt-get update && apt-get install -y --no-install-recommends /lockstep.deb; } >/log 2>&1 || { tail -n 20 /log; exit 1; }'
with_package "a compiler next to the package" 'type -p cc g++ || true'
trains "the package in ${suite}" "${suite}" lockstep
with_package "the completion of commands" \
  'source /usr/share/bash-completion/completions/lockstep
  COMP_WORDS=(lockstep chi) COMP_CWORD=1
  _lockstep
  [[ "${COMPREPLY[*]}" == chief ]]'
say "lintian and systemd"
with_package "installing lintian and systemd" \
  'apt-get install -y --no-install-recommends lintian systemd >/log 2>&1 || { tail -n 20 /log; exit 1; }'
with_package "lintian" 'lintian --allow-root /lockstep.deb'
with_package "the units" 'systemd-analyze verify --man=no lockstep-chief@run.service lockstep-worker@run.service'

if ((${#image[@]} == 0)); then
  say "the image"
  loaded="$(docker load -q -i lockstep-*-image.tar | sed -n 's/^Loaded image: //p')"
  # shellcheck disable=SC2016
  expect "the digest, the image" "${expected}" "$(docker run --rm --network=none --read-only --tmpfs /tmp --cap-drop=ALL \
    -v "${config}:/run.textproto:ro" --entrypoint sh "${loaded}" -c 'lockstep run /run.textproto --workers=2 \
      --logdir=/logdir/run >/tmp/log 2>&1 || tail -n 20 /tmp/log; lockstep inspect --digest /logdir/run' 2>&1)"
fi
say "${failures} failures"
((failures == 0))
