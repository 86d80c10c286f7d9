#!/usr/bin/env python3
"""A slow link between two network namespaces, until it is killed.

Usage: slow_link.py PROCESS KILOBITS DELAY

One end is the device "near", 192.0.2.1, in this process's namespace. The other is "far", 192.0.2.2, in that of PROCESS.
Each direction carries KILOBITS kbit/s, drops packets that would wait more than half a second for their turn, and takes
DELAY seconds more. The kernel's own queues need not support delays. Prints "ready".
"""

import collections
import fcntl
import os
import selectors
import struct
import subprocess
import sys
import time

_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_LONGEST_QUEUE = 0.5


def open_device(name, address, command):
  """Returns the file of a new device, after `command` has moved it and given it the address."""
  file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
  fcntl.ioctl(file, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI))
  subprocess.run(["bash", "-ec", command], env={**os.environ, "device": name, "address": address}, check=True)
  return file


class Direction:
  """The packets on their way from one device to the other."""

  def __init__(self, source, target, bits, delay):
    self.source, self._target, self._bits, self._delay = source, target, bits, delay
    self._free_at = 0.0  # when the link has sent all earlier packets
    self._packets = collections.deque()  # (arrival, packet)

  def read(self, now):
    while True:
      try:
        packet = os.read(self.source, 65536)
      except BlockingIOError:
        return
      begin = max(now, self._free_at)
      if begin - now > _LONGEST_QUEUE:
        continue
      self._free_at = begin + 8 * len(packet) / self._bits
      self._packets.append((self._free_at + self._delay, packet))

  def write(self, now):
    """Delivers the packets that have arrived. Returns the time of the next arrival."""
    while self._packets and self._packets[0][0] <= now:
      os.write(self._target, self._packets.popleft()[1])
    return self._packets[0][0] if self._packets else now + 3600


def main():
  process, bits, delay = sys.argv[1], 1000 * float(sys.argv[2]), float(sys.argv[3])
  configure = 'ip address add "${address}" dev "${device}"; ip link set "${device}" up'
  near = open_device("near", "192.0.2.1/24", configure)
  far = open_device(
      "far", "192.0.2.2/24",
      f'ip link set "${{device}}" netns {process}; nsenter --target {process} --net bash -ec \'{configure}\'')
  directions = [Direction(near, far, bits, delay), Direction(far, near, bits, delay)]
  selector = selectors.DefaultSelector()
  for direction in directions:
    selector.register(direction.source, selectors.EVENT_READ, direction)
  print("ready", flush=True)
  while True:
    now = time.monotonic()
    next_arrival = min([direction.write(now) for direction in directions])
    for key, _ in selector.select(max(0, next_arrival - now)):
      key.data.read(time.monotonic())


main()
