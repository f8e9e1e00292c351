#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The launch log in real processes, without a GPU: `gpoeo run --twin` around a program that launches
through a fake CUPTI (src/inject/testing). Whatever dies or is destroyed: the job does not notice,
nothing hangs, and nothing stays behind in /dev/shm."""

import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

from scene import BUILD, DEADLINE_S, GPOEO, Scenario, wait_until

PROGRAM = str(BUILD / "src" / "inject" / "fake_cuda_program")
WITHOUT_CUPTI = str(BUILD / "src" / "inject" / "program_without_cupti")
WITHOUT_CALLBACKS = str(BUILD / "src" / "inject" / "fake-without-callbacks")
CONSUMER = str(BUILD / "capi" / "step_marks_consumer")
LIBRARY = str(BUILD / "lib" / "libgpoeo.so.0")
SHM = pathlib.Path("/dev/shm")
PY_STEPS = f"""
import ctypes, time
gpoeo = ctypes.CDLL({LIBRARY!r})
gpoeo.gpoeo_begin()
for step in range(25):
    time.sleep(0.01)
    gpoeo.gpoeo_step()
gpoeo.gpoeo_end()
"""


class LaunchLog(Scenario):
    def tearDown(self):
        super().tearDown()
        wait_until(lambda: not self.rings_of_ours(), "ring folders are removed")

    def rings_of_ours(self):
        pids = {p.pid for p in self.processes}
        return [f for f in SHM.glob("gpoeo-rings-*") if int(f.name.split("-")[2]) in pids]

    def begin(self, *program, options=()):
        return self.start("run", "--twin", "a100", "--json", *options, "--", *program, stdin=subprocess.PIPE)

    def end(self, process, typed=""):
        out, err = process.communicate(typed, timeout=DEADLINE_S)
        start = out.find("{\n")
        return json.loads(out[start:]) if start >= 0 else None, out, err

    def run_job(self, *program, options=()):
        process = self.begin(*program, options=options)
        report, out, err = self.end(process)
        self.assertEqual(process.returncode, 0, err)
        return report

    def ring_file(self, process):
        """The ring of a job that waits; there before it says so."""
        found = []
        wait_until(lambda: found or found.extend(
            f for folder in self.rings_of_ours() for f in folder.glob("*.ring")), "a ring")
        return found[0]

    def test_iterations_are_counted_exactly_from_the_first_to_the_last(self):
        report = self.run_job(PROGRAM, "init", "paced", "321")
        self.assertEqual(report["iterations"], 321)
        self.assertEqual(report["progress_source"], "launch log")
        self.assertTrue(report["launch_log"].startswith("running to the end"), report["launch_log"])

    def test_a_profiler_that_comes_stops_the_log_and_the_session_says_so_once(self):
        report = self.run_job(PROGRAM, "init", "paced", "100", "profile", "paced", "100")
        self.assertEqual(report["iterations"], 100)
        self.assertIn("stopped: another CUPTI user", report["launch_log"])
        self.assertEqual(sum("CUPTI" in note for note in report["notes"]), 1)

    def test_says_why_there_is_no_log(self):
        report = self.run_job(PROGRAM, "init", "train", "5", options=("--no-inject",))
        self.assertEqual(report["launch_log"], "never started: --no-inject")
        report = self.run_job(PROGRAM, "profile", "init", "train", "5")
        self.assertIn("never started: another CUPTI user", report["launch_log"])
        report = self.run_job("true")
        self.assertIn("made no CUDA call", report["launch_log"])
        self.env["CUDA_INJECTION64_PATH"] = "/somewhere/mine.so"
        report = self.run_job("sh", "-c", 'test "$CUDA_INJECTION64_PATH" = /somewhere/mine.so')
        self.assertIn("left as it is", report["launch_log"])

    def test_runs_without_a_cupti_that_it_knows_and_says_what_is_missing(self):
        report = self.run_job(WITHOUT_CUPTI)
        self.assertIn("never started: no libcupti was found", report["launch_log"])
        self.env["FAKE_CUPTI_VERSION"] = "140000"
        report = self.run_job(PROGRAM, "init", "paced", "20")
        self.assertIn("none of the versions 11 to 13", report["launch_log"])
        del self.env["FAKE_CUPTI_VERSION"]
        self.env["LD_LIBRARY_PATH"] = WITHOUT_CALLBACKS
        report = self.run_job(PROGRAM, "init", "paced", "20")
        self.assertIn("lacks functions", report["launch_log"])

    def test_a_full_ring_drops_and_counts(self):
        report = self.run_job(PROGRAM, "init", "train", "20000")
        self.assertIn("dropped", report["launch_log"])

    def test_job_killed(self):
        process = self.begin(PROGRAM, "init", "paced", "50", "wait")
        ring = self.ring_file(process)
        os.kill(int(ring.name.split(".")[0]), signal.SIGKILL)
        report, _, err = self.end(process)
        self.assertEqual(process.returncode, 128 + signal.SIGKILL, err)
        self.assertEqual(report["exit_code"], 128 + signal.SIGKILL)

    def test_gpoeo_killed(self):
        process = self.begin(PROGRAM, "init", "paced", "50", "wait", "paced", "50")
        ring = self.ring_file(process)
        job = int(ring.name.split(".")[0])
        os.kill(process.pid, signal.SIGKILL)
        self.end(process, "\n")  # returns when the job, which holds the pipes too, has gone on and ended
        wait_until(lambda: not os.path.exists(f"/proc/{job}"), "the job ends by itself")

    def test_ring_scribbled_over(self):
        process = self.begin(PROGRAM, "init", "paced", "50", "wait", "paced", "50")
        ring = self.ring_file(process)
        with open(ring, "r+b") as file:
            file.seek(64)
            file.write(b"\xff" * 8)
        report, out, err = self.end(process, "\n")
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("launches 4000", out)
        self.assertTrue(any("corrupt" in note for note in report["notes"]), report["notes"])

    def test_ring_removed(self):
        process = self.begin(PROGRAM, "init", "paced", "50", "wait", "paced", "50")
        ring = self.ring_file(process)
        ring.unlink()
        ring.parent.rmdir()
        _, out, err = self.end(process, "\n")
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("launches 4000", out)


class StepMarks(Scenario):
    def run_job(self, *program):
        run = self.gpoeo("run", "--twin", "a100", "--json", "--", *program)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout[run.stdout.find("{\n"):])

    def test_c_program(self):
        report = self.run_job(CONSUMER, "40", "5000")
        self.assertEqual(report["iterations"], 40)
        self.assertEqual(report["progress_source"], "step marks")

    def test_python_by_ctypes(self):
        self.assertEqual(self.run_job(sys.executable, "-c", PY_STEPS)["iterations"], 25)

    def test_marks_are_counted_once_beside_launches(self):
        both = f'{PROGRAM} init paced 300 & {CONSUMER} 30 20000; wait'
        report = self.run_job("sh", "-c", both)
        self.assertEqual(report["iterations"], 30)
        self.assertEqual(report["progress_source"], "step marks")

    def test_nothing_happens_without_gpoeo(self):
        alone = subprocess.run([CONSUMER, "10"], env=self.env, capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual((alone.returncode, alone.stdout, alone.stderr), (0, "listening 0\n", ""))


if __name__ == "__main__":
    unittest.main()
