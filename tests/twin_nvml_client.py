# SPDX-License-Identifier: Apache-2.0
"""NVML clients in Python that know nothing of this project (ctypes and the standard library only).

Run inside twin_scene:  twin_nvml_client.py LIBRARY EXPORTS [test name...]
"""

import ctypes
import os
import socket
import subprocess
import sys
import unittest

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


class Uuid(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("type", ctypes.c_uint), ("value", ctypes.c_char * 41)]


nvml = ctypes.CDLL(LIBRARY)
scene = Scene()


def names():
    with open(EXPORTS, encoding="ascii") as file:
        return file.read().split()


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


class Initialised(unittest.TestCase):
    def setUp(self):
        self.assertEqual(nvml.nvmlInit_v2(), 0)
        self.card = handle()

    def tearDown(self):
        nvml.nvmlDeviceResetGpuLockedClocks(self.card)
        self.assertEqual(nvml.nvmlShutdown(), 0)

    def clocks(self):
        memory = number("nvmlDeviceGetClockInfo", self.card, 2)
        count = ctypes.c_uint(0)
        self.assertEqual(nvml.nvmlDeviceGetSupportedGraphicsClocks(
            self.card, memory, ctypes.byref(count), None), INSUFFICIENT_SIZE)
        clocks = (ctypes.c_uint * count.value)()
        self.assertEqual(nvml.nvmlDeviceGetSupportedGraphicsClocks(
            self.card, memory, ctypes.byref(count), clocks), 0)
        return list(clocks)

    def watch(self):
        scene.step(200)
        energy = number("nvmlDeviceGetTotalEnergyConsumption", self.card, kind=ctypes.c_ulonglong)
        iterations = scene.iterations()
        scene.step(40)
        return {
            "iterations": scene.iterations() - iterations,
            "energy": number("nvmlDeviceGetTotalEnergyConsumption", self.card,
                             kind=ctypes.c_ulonglong) - energy,
            "power": number("nvmlDeviceGetPowerUsage", self.card),
            "clock": number("nvmlDeviceGetClockInfo", self.card, 1),
        }


class ClosedLoop(Initialised):
    def test_lock_moves_clock_power_energy_and_job(self):
        clocks = self.clocks()
        middle = clocks[len(clocks) // 2]
        standard = self.watch()
        self.assertEqual(nvml.nvmlDeviceSetGpuLockedClocks(self.card, clocks[-1], middle), 0)
        locked = self.watch()
        self.assertEqual(nvml.nvmlDeviceResetGpuLockedClocks(self.card), 0)
        again = self.watch()
        print("default", standard, "\nlocked ", locked)
        self.assertEqual(locked["clock"], middle)
        for key in ("power", "energy"):
            self.assertLess(locked[key], 0.95 * standard[key])
        self.assertLess(locked["iterations"], 0.98 * standard["iterations"])
        self.assertGreater(again["iterations"], 0.97 * standard["iterations"])

    def test_two_processes_and_the_job_share_the_card(self):
        clocks = self.clocks()
        other = subprocess.run([sys.executable, __file__, LIBRARY, EXPORTS, "--lock",
                                str(clocks[-1]), str(clocks[-3])], check=True,
                               stdout=subprocess.PIPE, text=True,
                               pass_fds=[scene.fd])
        scene.step(1)
        self.assertEqual(number("nvmlDeviceGetClockInfo", self.card, 1), clocks[-3])
        # The job is a third process; both see it.
        processes = self.processes("nvmlDeviceGetComputeRunningProcesses_v3", Process)
        self.assertEqual(len(processes), 1)
        self.assertEqual(other.stdout.split(), [str(processes[0].pid)])
        self.assertNotIn(processes[0].pid, (0, os.getpid()))

    def processes(self, call, kind):
        count = ctypes.c_uint(8)
        infos = (kind * 8)()
        self.assertEqual(getattr(nvml, call)(self.card, ctypes.byref(count), infos), 0)
        return infos[:count.value]

    def test_each_form_of_the_process_list_has_its_own_layout(self):
        pids = [self.processes(call, kind)[0].pid for call, kind in (
            ("nvmlDeviceGetComputeRunningProcesses", ProcessV1),
            ("nvmlDeviceGetComputeRunningProcesses_v2", Process),
            ("nvmlDeviceGetComputeRunningProcesses_v3", Process))]
        self.assertEqual(len(set(pids)), 1)
        count = ctypes.c_uint(0)
        self.assertEqual(nvml.nvmlDeviceGetComputeRunningProcesses_v3(
            self.card, ctypes.byref(count), None), INSUFFICIENT_SIZE)
        self.assertEqual(count.value, 1)
        self.assertEqual(text("nvmlSystemGetProcessName", pids[0], length=256)[-10:], "twin_scene")

    def test_forked_child_goes_on_with_the_same_card(self):
        clocks = self.clocks()
        pid = os.fork()
        if pid == 0:
            code = nvml.nvmlDeviceSetGpuLockedClocks(self.card, clocks[-1], clocks[-2])
            os._exit(code)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        scene.step(1)
        self.assertEqual(number("nvmlDeviceGetClockInfo", self.card, 1), clocks[-2])

    def test_memory_of_the_job_is_used_and_gone_when_freed(self):
        memory = MemoryV2(version=ctypes.sizeof(MemoryV2) | 2 << 24)
        self.assertEqual(nvml.nvmlDeviceGetMemoryInfo_v2(self.card, ctypes.byref(memory)), 0)
        self.assertEqual(memory.total, memory.reserved + memory.free + memory.used)
        memory.version = 1
        self.assertEqual(nvml.nvmlDeviceGetMemoryInfo_v2(self.card, ctypes.byref(memory)),
                         VERSION_MISMATCH)


class Readings(Initialised):
    def test_samples_continue_where_the_last_call_ended(self):
        kind, count, room = ctypes.c_uint(), ctypes.c_uint(0), 512
        scene.step(1)
        self.assertEqual(nvml.nvmlDeviceGetSamples(
            self.card, 0, ctypes.c_ulonglong(0), ctypes.byref(kind), ctypes.byref(count), None), 0)
        self.assertGreater(count.value, 10)
        samples = (Sample * room)()

        def newer(than):
            count.value = room
            code = nvml.nvmlDeviceGetSamples(self.card, 0, ctypes.c_ulonglong(than),
                                             ctypes.byref(kind), ctypes.byref(count), samples)
            return code, list(samples[:count.value]) if code == 0 else []

        code, first = newer(0)
        self.assertEqual(code, 0)
        times = [s.time for s in first]
        self.assertEqual(times, sorted(set(times)))
        self.assertEqual(newer(times[-1])[0], NOT_FOUND)
        scene.step(0.5)
        code, then = newer(times[-1])
        self.assertEqual(code, 0)
        self.assertGreater(then[0].time, times[-1])
        for unseen in (5, 6):
            self.assertEqual(nvml.nvmlDeviceGetSamples(
                self.card, unseen, ctypes.c_ulonglong(0), ctypes.byref(kind), ctypes.byref(count),
                samples), NOT_FOUND)
        self.assertEqual(nvml.nvmlDeviceGetSamples(
            self.card, 7, ctypes.c_ulonglong(0), ctypes.byref(kind), ctypes.byref(count), samples),
            INVALID)

    def test_each_field_has_its_own_status(self):
        scene.step(2)
        values = (FieldValue * 4)()
        for value, field in zip(values, (186, 99999, 189, 83)):
            value.field = field
        self.assertEqual(nvml.nvmlDeviceGetFieldValues(self.card, 4, values), 0)
        self.assertEqual([v.status for v in values], [0, NOT_SUPPORTED, 0, 0])
        self.assertEqual(values[2].value,
                         number("nvmlDeviceGetPowerManagementDefaultLimit", self.card))
        self.assertGreater(values[0].value & 0xFFFFFFFF, 10_000)
        self.assertGreater(values[3].value, 0)

    def test_power_limit_holds_power_down(self):
        scene.step(200)
        low, high = ctypes.c_uint(), ctypes.c_uint()
        self.assertEqual(nvml.nvmlDeviceGetPowerManagementLimitConstraints(
            self.card, ctypes.byref(low), ctypes.byref(high)), 0)
        standard = number("nvmlDeviceGetPowerManagementDefaultLimit", self.card)
        before = number("nvmlDeviceGetPowerUsage", self.card)
        self.assertEqual(nvml.nvmlDeviceSetPowerManagementLimit(self.card, low.value - 1), INVALID)
        self.assertEqual(nvml.nvmlDeviceSetPowerManagementLimit(self.card, low.value), 0)
        scene.step(30)
        self.assertEqual(number("nvmlDeviceGetEnforcedPowerLimit", self.card), low.value)
        after = number("nvmlDeviceGetPowerUsage", self.card)
        self.assertLess(after, max(low.value * 1.1, before * 0.999))
        self.assertEqual(nvml.nvmlDeviceSetPowerManagementLimit(self.card, standard), 0)

    def test_errors_of_setters_reach_the_client(self):
        clocks = self.clocks()
        scene.ask("fail 1 permission")
        self.assertEqual(nvml.nvmlDeviceSetGpuLockedClocks(self.card, clocks[-1], clocks[0]),
                         NO_PERMISSION)
        scene.ask("fail 1 lost")
        self.assertEqual(nvml.nvmlDeviceResetGpuLockedClocks(self.card), LOST)
        self.assertEqual(nvml.nvmlDeviceResetGpuLockedClocks(self.card), 0)
        self.assertEqual(nvml.nvmlDeviceSetGpuLockedClocks(self.card, clocks[0], clocks[-1]), INVALID)


class Handles(Initialised):
    def test_found_by_everything_that_names_it(self):
        second = handle(1)
        uuid = text("nvmlDeviceGetUUID", second)
        self.assertTrue(uuid.startswith("GPU-"))
        self.assertNotEqual(uuid, text("nvmlDeviceGetUUID", self.card))
        pci = ctypes.create_string_buffer(68)
        self.assertEqual(nvml.nvmlDeviceGetPciInfo_v3(second, pci), 0)
        bus_id = pci.raw[36:].split(b"\0")[0]
        versioned = Uuid(ctypes.sizeof(Uuid) | 1 << 24, 1, uuid.encode())
        for call, key in (("nvmlDeviceGetHandleByUUID", uuid.encode()),
                          ("nvmlDeviceGetHandleByUUIDV", ctypes.byref(versioned)),
                          ("nvmlDeviceGetHandleByPciBusId_v2", bus_id),
                          ("nvmlDeviceGetHandleByPciBusId", bus_id[4:]),
                          ("nvmlDeviceGetHandleBySerial",
                           text("nvmlDeviceGetSerial", second).encode())):
            out = ctypes.c_void_p()
            self.assertEqual(getattr(nvml, call)(key, ctypes.byref(out)), 0, call)
            self.assertEqual(out.value, second.value, call)
        self.assertEqual(number("nvmlDeviceGetIndex", second), 1)
        out = ctypes.c_void_p()
        self.assertEqual(nvml.nvmlDeviceGetHandleByUUID(b"GPU-no", ctypes.byref(out)), NOT_FOUND)
        self.assertEqual(nvml.nvmlDeviceGetHandleByIndex_v2(7, ctypes.byref(out)), INVALID)

    def test_texts_that_do_not_fit_say_so(self):
        out = ctypes.create_string_buffer(4)
        self.assertEqual(nvml.nvmlDeviceGetName(self.card, out, 4), INSUFFICIENT_SIZE)


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


def lock_and_list(low, high):
    """The second process of the test above."""
    nvml.nvmlInit_v2()
    card = handle()
    assert nvml.nvmlDeviceSetGpuLockedClocks(card, low, high) == 0
    count, infos = ctypes.c_uint(8), (Process * 8)()
    assert nvml.nvmlDeviceGetComputeRunningProcesses_v3(card, ctypes.byref(count), infos) == 0
    print(*(info.pid for info in infos[:count.value]))


if __name__ == "__main__":
    if sys.argv[3:4] == ["--lock"]:
        lock_and_list(int(sys.argv[4]), int(sys.argv[5]))
    else:
        unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
