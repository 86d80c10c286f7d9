#!/usr/bin/env python3
"""Makes programs and libraries that were built with GCC 12 run with the C++ runtime of GCC 11 (RHEL 9), in place.

GCC 12 gave condition_variable::wait a second version, which differs only if the waiting thread is cancelled. Its runtime
and all newer ones have both versions. This program changes references to the new version into references to the old
one. It does not change files that need anything else of GCC 12.

  older_runtime.py FILE...
"""

import pathlib
import struct
import sys

RUNTIME = "libstdc++.so.6"
WAIT = "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE"
NEW, OLD = "GLIBCXX_3.4.30", "GLIBCXX_3.4.11"
# The types of the sections with the dynamic symbols, the versions that a file needs, and the version of each symbol.
DYNSYM, VERNEED, VERSYM = 11, 0x6ffffffe, 0x6fffffff


class Elf:
  """A file for a 64-bit, little-endian machine."""

  def __init__(self, path):
    self.path = path
    self.data = bytearray(path.read_bytes())
    offset, = struct.unpack_from("<Q", self.data, 0x28)
    size, count = struct.unpack_from("<HH", self.data, 0x3a)
    # The fields of a section are its name, type, flags, address, offset, size, link, info, alignment, size of an entry.
    self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.data, offset + i * size) for i in range(count)]

  def section(self, kind):
    return next((section for section in self.sections if section[1] == kind), None)

  def text(self, section, offset):
    begin = self.sections[section[6]][4] + offset
    return self.data[begin:self.data.index(0, begin)].decode()

  def needed(self):
    """Yields the name and the offset of each version of the runtime that the file needs (Elf64_Vernaux)."""
    section = self.section(VERNEED)
    offset = section[4] if section else 0
    for _ in range(section[7] if section else 0):
      _, count, name, first, following = struct.unpack_from("<HHIII", self.data, offset)
      version = offset + first
      for _ in range(count if self.text(section, name) == RUNTIME else 0):
        _, _, _, version_name, step = struct.unpack_from("<IHHII", self.data, version)
        yield self.text(section, version_name), version
        version += step
      offset += following

  def symbols_with(self, index):
    section, versions = self.section(DYNSYM), self.section(VERSYM)
    for i in range(section[5] // 24):
      if struct.unpack_from("<H", self.data, versions[4] + 2 * i)[0] & 0x7fff == index:
        yield self.text(section, struct.unpack_from("<I", self.data, section[4] + 24 * i)[0])

  def use_old_wait(self):
    versions = dict(self.needed())
    if NEW not in versions: return
    index, = struct.unpack_from("<H", self.data, versions[NEW] + 6)
    if set(self.symbols_with(index)) != {WAIT}: return
    old_hash, _, _, old_name = struct.unpack_from("<IHHI", self.data, versions[OLD])
    struct.pack_into("<I", self.data, versions[NEW], old_hash)
    struct.pack_into("<I", self.data, versions[NEW] + 8, old_name)
    self.path.write_bytes(self.data)


if __name__ == "__main__":
  for argument in sys.argv[1:]:
    Elf(pathlib.Path(argument)).use_old_wait()
