# SPDX-License-Identifier: Apache-2.0
"""The stock Python binding (`pynvml`, package nvidia-ml-py) on the twin's library.

Walks every getter of the binding and prints what it answers, then checks the closed loop: locks a
clock and sees clock, power, energy and the job follow. Not part of ctest: it needs the package.

  LD_LIBRARY_PATH=build/release/lib/twin build/release/tests/twin_scene h200 resnet50 2 \\
      python3 tests/hw/pynvml_walk.py
"""

import inspect
import os
import socket
import sys

import pynvml as nvml

# Getters that a twin must answer; everything else may be "Not Supported".
ANSWERED = """
nvmlSystemGetDriverVersion nvmlSystemGetNVMLVersion nvmlSystemGetCudaDriverVersion
nvmlSystemGetCudaDriverVersion_v2 nvmlDeviceGetCount nvmlDeviceGetName nvmlDeviceGetUUID
nvmlDeviceGetIndex nvmlDeviceGetMinorNumber nvmlDeviceGetPciInfo nvmlDeviceGetPciInfo_v3
nvmlDeviceGetBrand nvmlDeviceGetSerial nvmlDeviceGetBoardId nvmlDeviceGetBoardPartNumber
nvmlDeviceGetVbiosVersion nvmlDeviceGetArchitecture nvmlDeviceGetCudaComputeCapability
nvmlDeviceGetNumGpuCores nvmlDeviceGetMemoryInfo nvmlDeviceGetMemoryBusWidth
nvmlDeviceGetMaxPcieLinkGeneration nvmlDeviceGetCurrPcieLinkWidth nvmlDeviceGetPerformanceState
nvmlDeviceGetPowerManagementMode nvmlDeviceGetPowerManagementLimit
nvmlDeviceGetPowerManagementDefaultLimit nvmlDeviceGetPowerManagementLimitConstraints
nvmlDeviceGetEnforcedPowerLimit nvmlDeviceGetPowerUsage nvmlDeviceGetPowerState
nvmlDeviceGetTotalEnergyConsumption nvmlDeviceGetTemperature nvmlDeviceGetTemperatureV
nvmlDeviceGetMarginTemperature nvmlDeviceGetClockInfo nvmlDeviceGetMaxClockInfo
nvmlDeviceGetClock nvmlDeviceGetApplicationsClock nvmlDeviceGetDefaultApplicationsClock
nvmlDeviceGetMaxCustomerBoostClock nvmlDeviceGetSupportedMemoryClocks
nvmlDeviceGetSupportedGraphicsClocks nvmlDeviceGetCurrentClocksEventReasons
nvmlDeviceGetCurrentClocksThrottleReasons nvmlDeviceGetSupportedClocksEventReasons
nvmlDeviceGetCurrentClockFreqs nvmlDeviceGetPerformanceModes nvmlDeviceGetUtilizationRates
nvmlDeviceGetComputeRunningProcesses nvmlDeviceGetComputeRunningProcesses_v2
nvmlDeviceGetComputeRunningProcesses_v3 nvmlDeviceGetGraphicsRunningProcesses
nvmlDeviceGetMPSComputeRunningProcesses nvmlDeviceGetProcessUtilization nvmlDeviceGetSamples
nvmlDeviceGetComputeMode nvmlDeviceGetPersistenceMode nvmlDeviceGetEccMode
nvmlDeviceGetFieldValues nvmlGpmQueryDeviceSupport
""".split()

# What the binding's functions want beside the device.
ARGUMENTS = {
    "type": nvml.NVML_CLOCK_SM, "clockType": nvml.NVML_CLOCK_SM, "id": 0, "sensor": 0,
    "sensorType": 0, "threshold": 1, "fan": 0, "index": 0, "link": 0, "counter": 0,
    "errorType": 0, "counterType": 0, "locationType": 2, "timeStamp": 0, "sampling_type": 0,
    "fieldIds": [186, 185, 191, 99999], "pstate": 0, "pid": os.getpid(), "level": 0, "scope": 0,
    "profile": 0, "profileId": 0, "version": 1, "mode": 0, "apiType": 0, "sourceFilter": 0,
    "perfPolicyType": 0, "infoRomObject": 0, "p2pIndex": 0, "capability": 0,
    "encoderQueryType": 0, "sensorIndex": 0, "nodeSetSize": 1, "cpuSetSize": 1, "object": 0,
    "gpuInstanceId": 0,
}
# They free, draw on other objects, or change something.
SKIPPED = {"nvmlDeviceGetHandleByPciBusId", "nvmlDeviceGetHandleBySerial",
           "nvmlDeviceGetHandleByUUID", "nvmlDeviceGetHandleByUUIDV", "nvmlDeviceGetHandleByIndex"}


class Scene:
    def __init__(self):
        self.socket = socket.socket(fileno=os.dup(int(os.environ["GPOEO_SCENE_FD"])))
        self.lines = self.socket.makefile("r")

    def ask(self, request):
        self.socket.sendall((request + "\n").encode())
        return self.lines.readline().strip()


def arguments_for(function, device, memory_mhz):
    arguments = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.default is not inspect.Parameter.empty:
            break
        if name in ("handle", "device", "handle1", "handle2", "device1", "device2", "migDevice"):
            arguments.append(device)
        elif name == "memoryClockMHz":
            arguments.append(memory_mhz)
        elif name in ARGUMENTS:
            arguments.append(ARGUMENTS[name])
        else:
            return None
    return arguments


def walk(device):
    memory_mhz = nvml.nvmlDeviceGetMaxClockInfo(device, nvml.NVML_CLOCK_MEM)
    answers, errors, skipped = {}, {}, []
    for name, function in sorted(vars(nvml).items()):
        if not name.startswith(("nvmlDeviceGet", "nvmlSystemGet", "nvmlUnitGet", "nvmlGpmQuery",
                                "nvmlDeviceIs", "nvmlDeviceOn")) or not inspect.isfunction(function):
            continue
        arguments = None if name in SKIPPED else arguments_for(function, device, memory_mhz)
        if arguments is None:
            skipped.append(name)
            continue
        try:
            answers[name] = function(*arguments)
            print(f"{name:55} {str(answers[name])[:160]}")
        except nvml.NVMLError as error:
            errors[name] = error
            print(f"{name:55} -- {error}")
        except Exception as error:  # the binding's own faults must not end the walk
            errors[name] = error
            print(f"{name:55} -- in the binding: {type(error).__name__}: {error}")
    print(f"\n{len(answers)} getters answered, {len(errors)} refused, {len(skipped)} not tried: "
          + " ".join(skipped))
    problems = [f"{name} did not answer: {errors.get(name, 'not tried')}"
                for name in ANSWERED if name not in answers and hasattr(nvml, name)]
    problems += [f"{name} is not in the library" for name, error in errors.items()
                 if isinstance(error, nvml.NVMLError)
                 and error.value == nvml.NVML_ERROR_FUNCTION_NOT_FOUND]
    return problems


def closed_loop(device, scene):
    def watch():
        scene.ask("step 200")
        energy = nvml.nvmlDeviceGetTotalEnergyConsumption(device)
        iterations = int(scene.ask("iterations"))
        scene.ask("step 40")
        return (nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM),
                nvml.nvmlDeviceGetPowerUsage(device),
                nvml.nvmlDeviceGetTotalEnergyConsumption(device) - energy,
                int(scene.ask("iterations")) - iterations)

    memory = nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_MEM)
    clocks = nvml.nvmlDeviceGetSupportedGraphicsClocks(device, memory)
    middle = clocks[len(clocks) // 2]
    standard = watch()
    nvml.nvmlDeviceSetGpuLockedClocks(device, clocks[-1], middle)
    locked = watch()
    nvml.nvmlDeviceResetGpuLockedClocks(device)
    again = watch()
    for name, (mhz, mw, mj, iterations) in (("default", standard), ("locked", locked),
                                            ("reset", again)):
        print(f"{name:8} {mhz} MHz, {mw / 1e3:.1f} W, {mj / 1e3:.0f} J and {iterations} iterations "
              "in 40 s (simulated)")
    problems = []
    if locked[0] != middle:
        problems.append(f"the clock is {locked[0]} MHz, locked to {middle}")
    for i, what, share in ((1, "power", 0.95), (2, "energy", 0.95), (3, "job speed", 0.99)):
        if locked[i] > share * standard[i]:
            problems.append(f"{what} did not follow the lock: {standard[i]} -> {locked[i]}")
    if again[3] < 0.97 * standard[3]:
        problems.append(f"the job did not come back to speed: {standard[3]} -> {again[3]}")
    return problems


def main():
    scene = Scene()
    nvml.nvmlInit()
    scene.ask("step 5")
    device = nvml.nvmlDeviceGetHandleByIndex(0)
    print(f"pynvml {getattr(nvml, '__version__', '?')} on {nvml.nvmlDeviceGetName(device)}, driver "
          f"{nvml.nvmlSystemGetDriverVersion()}\n")
    problems = walk(device) + closed_loop(device, scene)
    nvml.nvmlShutdown()
    print("\n".join(problems) or "all well")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
