#!/usr/bin/env python3
"""Writes images_golden.txt: images, and how TensorFlow decodes and resizes them.

Each line: name, the file in hexadecimal, channels, the pixels of tf.io.decode_image (for JPEG with the accurate DCT) in
hexadecimal, a target height and width, and the bits of the floats to which tf.image.resize scales it without
antialiasing.
"""

import io
import sys

import numpy as np
import tensorflow as tf


def pixels(height, width, channels):
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(channels), indexing="ij")
    return ((9 * y * (c + 1) + 6 * x + 50 * c + 3 * ((x * y) % 5)) % 256).astype(np.uint8)


def files():
    yield "png", tf.io.encode_png(pixels(5, 4, 3)).numpy(), 3
    yield "png_grey", tf.io.encode_png(pixels(4, 5, 1)).numpy(), 3
    yield "png_16", tf.io.encode_png(pixels(4, 3, 3).astype(np.uint16) * 200 + 77).numpy(), 3
    yield "png_alpha", tf.io.encode_png(pixels(3, 3, 4)).numpy(), 3
    for name, options in [("jpeg", {}), ("jpeg_progressive", {"progressive": True}),
                          ("jpeg_444", {"chroma_downsampling": False}), ("jpeg_low", {"quality": 20})]:
        yield name, tf.io.encode_jpeg(pixels(19, 21, 3), **options).numpy(), 3
    yield "jpeg_as_grey", tf.io.encode_jpeg(pixels(11, 9, 3)).numpy(), 1
    yield "jpeg_grey", tf.io.encode_jpeg(pixels(9, 10, 1), format="grayscale").numpy(), 3


def decode(name, file, channels):
    if name.startswith("png"):
        return tf.io.decode_png(file, channels=channels).numpy()
    return tf.io.decode_jpeg(file, channels=channels, dct_method="INTEGER_ACCURATE").numpy()


def main():
    out = io.StringIO()
    for index, (name, file, channels) in enumerate(files()):
        image = decode(name, file, channels)
        height, width = 4 + index % 3, 7 - index % 4
        resized = tf.image.resize(image, [height, width], antialias=False).numpy().astype("<f4")
        out.write(f"{name} {file.hex()} {channels} {image.shape[0]} {image.shape[1]} {image.tobytes().hex()} "
                  f"{height} {width} {resized.tobytes().hex()}\n")
    with open(sys.argv[1], "w") as file:
        file.write(out.getvalue())


if __name__ == "__main__":
    main()
