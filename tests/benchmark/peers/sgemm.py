"""Runs the matrix products of one step of the perceptron 784-512-512-10 with oneDNN's sgemm on one thread.

    sgemm.py BATCH

The products and their order are those of mlp_products.cc. Needs Debian's libdnnl2.
"""
import ctypes
import os
import sys

os.environ["OMP_NUM_THREADS"] = "1"  # before the library is loaded

import numpy as np

import exchange

UNITS = (784, 512, 512, 10)


def products(batch, random):
    """Returns (a, whether a is stored transposed, b, whether b is stored transposed, c); all arrays are row-major."""
    def matrix(rows, columns):
        return random.standard_normal((rows, columns), np.float32)

    sizes = list(zip(UNITS, UNITS[1:]))
    inputs = [matrix(batch, i) for i, _ in sizes]
    kernels = [matrix(i, o) for i, o in sizes]
    outputs = [matrix(batch, o) for _, o in sizes]
    forward = [(inputs[n], False, kernels[n], False, outputs[n]) for n in range(len(sizes))]
    backward = []
    for n in reversed(range(len(sizes))):
        backward.append((inputs[n], True, outputs[n], False, np.empty_like(kernels[n])))
        if n > 0:
            backward.append((outputs[n], False, kernels[n], True, np.empty_like(inputs[n])))
    return forward + backward


def call(sgemm, a, a_transposed, b, b_transposed, c):
    """Returns the arguments of a call, converted by ctypes."""
    inner = a.shape[0] if a_transposed else a.shape[1]
    size, number, pointer = ctypes.c_int64, ctypes.c_float, ctypes.c_void_p
    flag = {False: ctypes.c_char(b"N"), True: ctypes.c_char(b"T")}
    arguments = (flag[a_transposed], flag[b_transposed], size(c.shape[0]), size(c.shape[1]), size(inner), number(1),
                 pointer(a.ctypes.data), size(a.shape[1]), pointer(b.ctypes.data), size(b.shape[1]), number(0),
                 pointer(c.ctypes.data), size(c.shape[1]))
    expected = (a.T if a_transposed else a) @ (b.T if b_transposed else b)
    if sgemm(*arguments) != 0 or not np.allclose(c, expected, atol=1e-2):
        raise RuntimeError("dnnl_sgemm has computed something else")
    return arguments


def main():
    sgemm = ctypes.CDLL("libdnnl.so.2").dnnl_sgemm
    matrices = products(int(sys.argv[1]), np.random.default_rng(1))
    calls = [call(sgemm, *product) for product in matrices]

    def step():
        for arguments in calls:
            sgemm(*arguments)

    exchange.serve(step)


if __name__ == "__main__":
    main()
