#!/usr/bin/env python3
"""Moves a checkpoint to another step: its files, its variable global_step, its checksums and the state file.

  move_checkpoint.py LOGDIR STEP NEW_STEP
"""

import pathlib
import struct
import sys


def masked_crc(data):
  """Returns the masked CRC32C, in the bytes that files have."""
  crc = 0xffffffff
  for byte in data:
    crc ^= byte
    for _ in range(8):
      crc = (crc >> 1) ^ (0x82f63b78 & -(crc & 1))
  crc ^= 0xffffffff
  return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xa282ead8) & 0xffffffff)


def varints(data, position, count):
  values = []
  for _ in range(count):
    value, shift = 0, 0
    while True:
      byte = data[position]
      value, shift, position = value | (byte & 127) << shift, shift + 7, position + 1
      if byte < 128:
        break
    values.append(value)
  return values, position


def blocks(index):
  """Yields the place and size of each block with entries. The footer names a block that lists them."""
  (_, _, at, size), _ = varints(index, len(index) - 48, 4)
  (restarts,) = struct.unpack_from("<I", index, at + size - 4)
  position, end = at, at + size - 4 - 4 * restarts
  while position < end:
    (_, key, value), position = varints(index, position, 3)
    yield varints(index, position + key, 2)[0]
    position += key + value


def replace(data, old, new):
  if data.count(old) != 1:
    sys.exit(f"{old} is there {data.count(old)} times")
  place = data.index(old)
  data[place:place + len(old)] = new
  return place


def main(logdir, step, new_step):
  old, new = logdir / f"model.ckpt-{step}", logdir / f"model.ckpt-{new_step}"
  values = bytearray(old.with_name(old.name + ".data-00000-of-00001").read_bytes())
  index = bytearray(old.with_name(old.name + ".index").read_bytes())
  before, after = struct.pack("<q", step), struct.pack("<q", new_step)
  replace(values, before, after)
  place = replace(index, masked_crc(before), masked_crc(after))
  for at, size in blocks(index):
    if at <= place < at + size:
      index[at + size + 1:at + size + 5] = masked_crc(index[at:at + size + 1])
  for file in logdir.glob("model.ckpt-*"):
    file.unlink()
  new.with_name(new.name + ".data-00000-of-00001").write_bytes(values)
  new.with_name(new.name + ".index").write_bytes(index)
  (logdir / "checkpoint").write_text(f'model_checkpoint_path: "{new.name}"\nall_model_checkpoint_paths: "{new.name}"\n')


if __name__ == "__main__":
  main(pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
