# SPDX-License-Identifier: Apache-2.0
"""What the scenario tests share: the built programs, a twin that is up, and its locks as any NVML
client with the twin's extension sees them. Standard library only."""

import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

BUILD = pathlib.Path(os.environ["GPOEO_BUILD_DIR"])
GPOEO = str(BUILD / "bin" / "gpoeo")
TWIN_JOB = str(BUILD / "bin" / "gpoeo-twin-job")
TWIN_LIBRARY = str(BUILD / "lib" / "twin" / "libnvidia-ml.so.1")
DEADLINE_S = 60

LOCKS_PROGRAM = """
import ctypes, json, sys
n = ctypes.CDLL(sys.argv[1]); n.nvmlInit_v2(); count = ctypes.c_uint(); n.nvmlDeviceGetCount_v2(ctypes.byref(count))
locks = []
for i in range(count.value):
    h = ctypes.c_void_p(); n.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(h))
    if len(sys.argv) > 3: assert n.nvmlDeviceSetGpuLockedClocks(h, int(sys.argv[2]), int(sys.argv[3])) == 0
    low, high = ctypes.c_uint(), ctypes.c_uint()
    rc = n.gpoeoTwinDeviceGetLockedClocks(h, 1, ctypes.byref(low), ctypes.byref(high))
    locks.append([low.value, high.value] if rc == 0 and high.value else None)
print(json.dumps(locks))
"""


def wait_until(condition, what):
    """Waits on wall time, since real processes run; fails the test after DEADLINE_S."""
    end = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {DEADLINE_S} s: {what}")
        time.sleep(0.05)


class Scenario(unittest.TestCase):
    """A private state folder and home; twins made by a test are removed after it."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpoeo-scenario-"))
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("GPOEO_") or k == "GPOEO_DATA_DIR"}
        self.env |= {"GPOEO_STATE_DIR": str(self.folder / "state"), "HOME": str(self.folder)}
        self.env.pop("XDG_CONFIG_HOME", None)
        self.twins = []
        self.processes = []

    def tearDown(self):
        for process in self.processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)  # the job may outlive a gpoeo that was killed
            except ProcessLookupError:
                pass
            process.communicate()
        for twin in self.twins:
            self.gpoeo("twin", "down", "--force", twin)
        shutil.rmtree(self.folder)

    def gpoeo(self, *arguments, **options):
        return subprocess.run([GPOEO, *arguments], env=self.env, capture_output=True, text=True,
                              cwd=self.folder, timeout=DEADLINE_S, **options)

    def start(self, *arguments, **options):
        """A gpoeo in the background, in a process group of its own."""
        process = subprocess.Popen([GPOEO, *arguments], env=self.env, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, cwd=self.folder,
                                   start_new_session=True, **options)
        self.processes.append(process)
        return process

    def twin_up(self, device="a100", cards=1, speed=20):
        name = f"scenario-{os.getpid()}-{len(self.twins)}"
        up = self.gpoeo("twin", "up", device, "--name", name, "--cards", str(cards), "--speed", str(speed))
        self.assertEqual(up.returncode, 0, up.stderr)
        self.twins.append(name)
        return name

    def locks(self, twin, *lock):
        """SM locks of all cards: [min, max] or None. With two numbers, locks first."""
        answer = subprocess.run(
            ["python3", "-c", LOCKS_PROGRAM, TWIN_LIBRARY, *map(str, lock)],
            env=self.env | {"GPOEO_TWIN": twin}, capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return json.loads(answer.stdout)

    def journals(self):
        state = self.folder / "state"
        return sorted(p.name for p in state.glob("*.json")) if state.exists() else []
