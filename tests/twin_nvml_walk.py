# SPDX-License-Identifier: Apache-2.0
"""Each exported call of the twin's library: as it stands, with nulls, with a wrong handle, and before
init. Run inside twin_scene:  twin_nvml_walk.py LIBRARY EXPORTS [test name...]
"""

import ctypes
import sys
import unittest

from twin_nvml_python import (EXPORTS, INSUFFICIENT_SIZE, INVALID, NO_PERMISSION, NOT_FOUND,
                              NOT_SUPPORTED, UNINITIALIZED, VERSION_MISMATCH, handle, nvml, scene)


def names():
    with open(EXPORTS, encoding="ascii") as file:
        return file.read().split()


# How the modelled calls that take more than a handle and pointers are called: h a handle, b a buffer,
# c a buffer that begins with a count of 64.
SHAPES = {
    "nvmlDeviceGetClock": "h 1 0 b", "nvmlDeviceGetFieldValues": "h 1 b",
    "nvmlDeviceGetSamples": "h 0 0 b c b", "nvmlDeviceGetSupportedGraphicsClocks": "h 1 c b",
    "nvmlDeviceGetSupportedMemoryClocks": "h c b", "nvmlDeviceGetTemperature": "h 0 b",
    "nvmlDeviceGetTemperatureThreshold": "h 0 b", "nvmlDeviceGetTotalEccErrors": "h 0 0 b",
    "nvmlDeviceGetMinMaxClockOfPState": "h 1 0 b b",
    "nvmlDeviceGetSupportedPerformanceStates": "h b 64", "nvmlSystemGetProcessName": "1 b 64",
    "nvmlDeviceGetHandleByIndex": "0 b", "nvmlDeviceGetHandleByIndex_v2": "0 b",
    "nvmlDeviceGetProcessUtilization": "h b c 0", "nvmlDeviceOnSameBoard": "h h b",
    "nvmlDeviceGetHandleByUUID": "b b", "nvmlDeviceGetHandleByUUIDV": "b b",
    "nvmlDeviceGetHandleByPciBusId": "b b", "nvmlDeviceGetHandleByPciBusId_v2": "b b",
    "nvmlDeviceGetHandleBySerial": "b b", "nvmlDeviceGetCount": "b", "nvmlDeviceGetCount_v2": "b",
    "nvmlSystemGetCudaDriverVersion": "b", "nvmlSystemGetCudaDriverVersion_v2": "b",
    "nvmlSystemGetDriverVersion": "b 64", "nvmlSystemGetNVMLVersion": "b 64",
    "nvmlGpmMetricsGet": "b", "nvmlGpmSampleAlloc": "b", "nvmlGpmSampleFree": "b",
    "nvmlGpmSampleGet": "h b", "nvmlDeviceSetGpuLockedClocks": "h 1 1",
    "nvmlDeviceSetMemoryLockedClocks": "h 1 1", "nvmlDeviceSetApplicationsClocks": "h 1 1",
    "nvmlDeviceSetPowerManagementLimit": "h 1",
}
for _name in ("Name", "UUID", "Serial", "BoardPartNumber", "VbiosVersion"):
    SHAPES["nvmlDeviceGet" + _name] = "h b 64"
for _name in ("ClockInfo", "MaxClockInfo", "MaxCustomerBoostClock", "ApplicationsClock",
              "DefaultApplicationsClock"):
    SHAPES["nvmlDeviceGet" + _name] = "h 1 b"
for _name in ("Compute", "Graphics", "MPSCompute"):
    for _version in ("", "_v2", "_v3"):
        SHAPES[f"nvmlDeviceGet{_name}RunningProcesses{_version}"] = "h c b"
LIFE = ("nvmlInit", "nvmlInit_v2", "nvmlInitWithFlags", "nvmlShutdown", "nvmlErrorString")


class Walk(unittest.TestCase):
    """Each exported call, as it stands, with nulls, with a wrong handle, and before init."""

    def call_all(self, device, null=False):
        codes = {}
        for name in names():
            if name in LIFE:
                continue
            arguments = []
            for word in SHAPES.get(name, "h b b b b b").split():
                buffer = ctypes.create_string_buffer(1 << 16)
                if word == "h":
                    arguments.append(device)
                elif word in "bc":
                    if word == "c":
                        ctypes.c_uint.from_buffer(buffer).value = 64
                    arguments.append(None if null else buffer)
                else:
                    arguments.append(ctypes.c_ulonglong(int(word)))
            codes[name] = getattr(nvml, name)(*arguments)
        return codes

    def test_before_init_nothing_works_and_nothing_crashes(self):
        codes = self.call_all(None)
        early = {n for n, code in codes.items() if code != UNINITIALIZED}
        self.assertEqual(early, {"nvmlSystemGetCudaDriverVersion", "nvmlSystemGetCudaDriverVersion_v2"})

    def test_every_call_answers(self):
        self.assertEqual(nvml.nvmlInit(), 0)
        scene.step(3)
        codes = self.call_all(handle())
        answers = [n for n, code in codes.items() if code == 0]
        print(f"{len(codes)} calls, {len(answers)} answer with plain arguments")
        self.assertGreater(len(answers), 80)
        self.assertTrue(set(codes.values()) <= {0, INVALID, NOT_SUPPORTED, NOT_FOUND,
                                                INSUFFICIENT_SIZE, VERSION_MISMATCH})
        nvml.nvmlShutdown()

    def test_null_arguments_are_invalid_not_fatal(self):
        self.assertEqual(nvml.nvmlInitWithFlags(0), 0)
        for name, code in self.call_all(handle(), null=True).items():
            if "Set" in name or "Reset" in name:
                continue
            self.assertIn(code, (INVALID, NOT_SUPPORTED, INSUFFICIENT_SIZE, NOT_FOUND), name)
        nvml.nvmlShutdown()

    def test_wrong_handles_are_invalid_not_fatal(self):
        self.assertEqual(nvml.nvmlInit_v2(), 0)
        for wrong in (None, ctypes.c_void_p(8), ctypes.c_void_p(handle().value + 4096)):
            for name, code in self.call_all(wrong).items():
                if SHAPES.get(name, "h").split()[0] == "h":
                    self.assertIn(code, (INVALID, NOT_SUPPORTED), name)
        nvml.nvmlShutdown()

    def test_error_texts(self):
        nvml.nvmlErrorString.restype = ctypes.c_char_p
        self.assertEqual(nvml.nvmlErrorString(NO_PERMISSION), b"Insufficient Permissions")
        self.assertEqual(nvml.nvmlErrorString(12345), b"Unknown Error")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
