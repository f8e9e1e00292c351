# SPDX-License-Identifier: Apache-2.0
"""What the Python clients of the twin's library share: the scene's other end, the library by ctypes,
and the layouts of the structures they use. Knows NVML only, nothing of this project.

Scripts are run inside twin_scene:  SCRIPT LIBRARY EXPORTS [test name...]
"""

import ctypes
import os
import socket
import sys

LIBRARY, EXPORTS = sys.argv[1], sys.argv[2]

UNINITIALIZED, INVALID, NOT_SUPPORTED, NO_PERMISSION = 1, 2, 3, 4
NOT_FOUND, INSUFFICIENT_SIZE, LOST, VERSION_MISMATCH = 6, 7, 15, 25


class Scene:
    """The other end of GPOEO_SCENE_FD: moves time, counts iterations."""

    def __init__(self):
        self.fd = int(os.environ["GPOEO_SCENE_FD"])
        self.socket = socket.socket(fileno=os.dup(self.fd))
        self.lines = self.socket.makefile("r")

    def ask(self, request):
        self.socket.sendall((request + "\n").encode())
        return self.lines.readline().strip()

    def step(self, seconds):
        assert self.ask(f"step {seconds}") == "ok"

    def iterations(self):
        return int(self.ask("iterations"))


class FieldValue(ctypes.Structure):
    _fields_ = [("field", ctypes.c_uint), ("scope", ctypes.c_uint), ("time", ctypes.c_longlong),
                ("latency", ctypes.c_longlong), ("type", ctypes.c_uint), ("status", ctypes.c_uint),
                ("value", ctypes.c_ulonglong)]


class Sample(ctypes.Structure):
    _fields_ = [("time", ctypes.c_ulonglong), ("value", ctypes.c_ulonglong)]


class ProcessV1(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("memory", ctypes.c_ulonglong)]


class Process(ctypes.Structure):
    _fields_ = ProcessV1._fields_ + [("gpu_instance", ctypes.c_uint),
                                     ("compute_instance", ctypes.c_uint)]


class MemoryV2(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint)] + [
        (name, ctypes.c_ulonglong) for name in ("total", "reserved", "free", "used")]


class GpmMetric(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint), ("status", ctypes.c_uint), ("value", ctypes.c_double),
                ("short", ctypes.c_char_p), ("long", ctypes.c_char_p), ("unit", ctypes.c_char_p)]


class GpmRequest(ctypes.Structure):
    # Room for 98 metrics, as in the headers of drivers before 550: shorter than the library's own.
    _fields_ = [("version", ctypes.c_uint), ("count", ctypes.c_uint), ("earlier", ctypes.c_void_p),
                ("later", ctypes.c_void_p), ("metrics", GpmMetric * 98)]


class Uuid(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("type", ctypes.c_uint), ("value", ctypes.c_char * 41)]


nvml = ctypes.CDLL(LIBRARY)
scene = Scene()


def number(call, *arguments, kind=ctypes.c_uint):
    out = kind()
    code = getattr(nvml, call)(*arguments, ctypes.byref(out))
    assert code == 0, f"{call}: {code}"
    return out.value


def text(call, *arguments, length=96):
    out = ctypes.create_string_buffer(length)
    code = getattr(nvml, call)(*arguments, out, ctypes.c_uint(length))
    assert code == 0, f"{call}: {code}"
    return out.value.decode()


def handle(index=0):
    out = ctypes.c_void_p()
    assert nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(out)) == 0
    return out
