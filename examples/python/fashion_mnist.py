"""Reads Fashion-MNIST as installed by Debian's package dataset-fashion-mnist."""

import gzip
import pathlib

import numpy as np

FOLDER = pathlib.Path("/usr/share/datasets/fashion-mnist")


def _read_idx(path, header_bytes):
  with gzip.open(path) as file:
    return np.frombuffer(file.read(), np.uint8, offset=header_bytes)


def load(split):
  """Returns the images, float32 in [0, 1] of shape [n, 784], and the labels, int64 of shape [n]. split is "train" or
  "t10k"."""
  labels = _read_idx(FOLDER / f"{split}-labels-idx1-ubyte.gz", 8).astype(np.int64)
  images = _read_idx(FOLDER / f"{split}-images-idx3-ubyte.gz", 16).reshape(len(labels), 784)
  return images.astype(np.float32) / 255, labels
