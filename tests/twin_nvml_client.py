# SPDX-License-Identifier: Apache-2.0
"""NVML clients in Python (ctypes and the standard library only): the closed loop, sharing, each form
of a call. Run inside twin_scene:  twin_nvml_client.py LIBRARY EXPORTS [test name...]
"""

import ctypes
import os
import subprocess
import sys
import unittest

from twin_nvml_python import (EXPORTS, INSUFFICIENT_SIZE, INVALID, LIBRARY, LOST, NO_PERMISSION,
                              NOT_FOUND, NOT_SUPPORTED, VERSION_MISMATCH, FieldValue, GpmRequest,
                              MemoryV2, Process, ProcessV1, Sample, Uuid, handle, number, nvml, scene,
                              text)


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

    def test_activity_counters(self):
        support = (ctypes.c_uint * 2)(1, 0)
        self.assertEqual(nvml.nvmlGpmQueryDeviceSupport(self.card, support), 0)
        earlier, later = ctypes.c_void_p(), ctypes.c_void_p()
        for sample in (earlier, later):
            self.assertEqual(nvml.nvmlGpmSampleAlloc(ctypes.byref(sample)), 0)
        if not support[1]:
            self.assertEqual(nvml.nvmlGpmSampleGet(self.card, earlier), NOT_SUPPORTED)
        else:
            self.activity(earlier, later)
        for sample in (earlier, later):
            self.assertEqual(nvml.nvmlGpmSampleFree(sample), 0)
            self.assertEqual(nvml.nvmlGpmSampleFree(sample), INVALID)

    def activity(self, earlier, later):
        scene.step(2)
        self.assertEqual(nvml.nvmlGpmSampleGet(self.card, earlier), 0)
        request = GpmRequest(1, 3, earlier.value, later.value)
        for metric, number_ in zip(request.metrics, (2, 10, 60)):
            metric.id = number_
        self.assertEqual(nvml.nvmlGpmMetricsGet(ctypes.byref(request)), INVALID)  # one sample only
        scene.step(0.02)
        self.assertEqual(nvml.nvmlGpmSampleGet(self.card, later), 0)
        scene.step(2)
        self.assertEqual(nvml.nvmlGpmSampleGet(self.card, later), 0)
        self.assertEqual(nvml.nvmlGpmMetricsGet(ctypes.byref(request)), 0)
        sm, dram, nvlink = request.metrics[:3]
        self.assertEqual((sm.status, dram.status, nvlink.status), (0, 0, NOT_SUPPORTED))
        self.assertTrue(1 < sm.value <= 100, sm.value)
        self.assertTrue(0 <= dram.value <= 100, dram.value)
        self.assertEqual(sm.unit, b"%")
        request.version = 2
        self.assertEqual(nvml.nvmlGpmMetricsGet(ctypes.byref(request)), VERSION_MISMATCH)

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
