#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`gpoeo measure`: a sweep on the twin gives the table that the twin replays; however it ends, the
clocks are as they were and what was measured is kept and marked."""

import csv
import signal
import unittest

from scene import BUILD, TWIN_JOB, Scenario, wait_until

TABLES = BUILD / "data" / "tables"


def rows(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def head(path):
    return [line for line in path.read_text().splitlines() if line.startswith("#")]


class Measure(Scenario):
    def measure(self, twin, *options, job=("lstm", "--seconds", "100000"), start=False, timeout=60):
        self.table = self.folder / "table.csv"
        arguments = ["measure", "--twin", twin, "--workload", "LSTM", "--output", str(self.table),
                     *options, "--", TWIN_JOB, *job]
        return self.start(*arguments) if start else self.gpoeo(*arguments)

    def test_sweep_gives_the_table_that_the_twin_replays(self):
        twin = self.twin_up(speed=60)
        done = self.measure(twin, "--clocks", "1410,1110,900,705", "--seconds-per-clock", "8", "--soak", "20")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("SIMULATED", head(self.table)[0])
        self.assertEqual(self.locks(twin), [None])
        self.assertEqual(self.journals(), [])
        measured = {}
        for row in rows(self.table):
            measured.setdefault(row["sm_clock_mhz"], []).append((float(row["time_s"]), float(row["power_w"])))
        self.assertEqual(sorted(measured), ["1110", "1410", "705", "900", "default"])
        self.assertEqual(len(measured["default"]), 2)
        truth = {r["sm_clock_mhz"]: r for r in rows(TABLES / "a100.csv") if r["workload"] == "LSTM"}
        time, power = (sum(v[i] for v in measured["default"]) / 2 for i in (0, 1))
        for clock in ("1110", "900", "705"):
            # Against raw points of the table, which themselves lie up to 4 % off their curve.
            self.assertAlmostEqual(measured[clock][0][1] / power,
                                   float(truth[clock]["power_w"]) / float(truth["1410"]["power_w"]), delta=0.03)
        self.assertGreater(measured["705"][0][0] / time, 1.0)

        check = self.gpoeo("measure", "--check", str(self.table))
        self.assertEqual(check.returncode, 0, check.stderr)
        self.assertIn("LSTM", check.stdout)

    def check_interrupted(self, number, code):
        twin = self.twin_up(speed=60)
        self.locks(twin, 210, 1200)  # somebody's
        process = self.measure(twin, "--clocks", "1200,1005,705", "--soak", "0", "--repeats", "50", start=True)
        wait_until(lambda: self.table.exists() and len(rows(self.table)) >= 3, "three rows are written")
        wait_until(lambda: self.locks(twin)[0] != [210, 1200], "a clock is set")
        process.send_signal(number)
        # wait(), not communicate(): a job whose gpoeo was killed lives on and holds the pipes.
        self.assertEqual(process.wait(timeout=60), code)
        wait_until(lambda: self.locks(twin)[0] == [210, 1200], "the lock of before is back")
        wait_until(lambda: self.journals() == [], "the journal is gone")
        self.assertTrue(head(self.table)[0].startswith("# PARTIAL"), head(self.table)[0])
        self.assertGreaterEqual(len(rows(self.table)), 3)

    def test_sigint(self):
        self.check_interrupted(signal.SIGINT, 128 + signal.SIGINT)

    def test_sigterm(self):
        self.check_interrupted(signal.SIGTERM, 128 + signal.SIGTERM)

    def test_kill_9(self):
        self.check_interrupted(signal.SIGKILL, -signal.SIGKILL)

    def test_a_job_that_ends_is_started_again(self):
        twin = self.twin_up(speed=60)
        done = self.measure(twin, "--clocks", "1410,900", "--seconds-per-clock", "10", "--soak", "0",
                            "--warm-up", "2", "--repeats", "2", job=("lstm", "--seconds", "40"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("started again", done.stderr)
        self.assertEqual(self.locks(twin), [None])

    def test_whole_runs_need_no_iterations(self):
        twin = self.twin_up(speed=60)
        done = self.measure(twin, "--clocks", "600", "--whole-runs",
                            job=("lstm", "--seconds", "30", "--progress", "none"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.locks(twin), [None])
        self.assertEqual([r["sm_clock_mhz"] for r in rows(self.table)], ["default", "600", "default"])
        times = [float(r["time_s"]) for r in rows(self.table)]
        self.assertGreater(times[1] / times[0], 1.1)

    def test_a_job_that_is_too_short_says_so(self):
        twin = self.twin_up(speed=60)
        done = self.measure(twin, job=("lstm", "--seconds", "5"))
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertIn("before one setting was measured", done.stderr)
        self.assertFalse(self.table.exists())

    def test_a_job_that_fails_ends_it_with_its_code(self):
        twin = self.twin_up(speed=60)
        done = self.measure(twin, "--soak", "0", job=("lstm", "--seconds", "1000", "--crash-after", "60"))
        self.assertEqual(done.returncode, 128 + signal.SIGABRT, done.stderr)
        self.assertIn("PARTIAL", head(self.table)[0])
        self.assertEqual(self.locks(twin), [None])

    def test_a_write_that_fails_is_told_and_clocks_are_back(self):
        twin = self.twin_up(speed=60)
        self.assertEqual(self.gpoeo("twin", "fault", twin, "--write", "4", "--kind", "io").returncode, 0)
        done = self.measure(twin, "--soak", "0")
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertIn("clocks cannot be set", done.stderr)
        self.assertEqual(self.locks(twin), [None])

    def test_bad_requests_are_refused_before_anything_is_set(self):
        twin = self.twin_up()
        self.assertEqual(self.measure(twin, "--clocks", "1411").returncode, 2)
        self.assertEqual(self.measure(twin, "--clocks", "fast").returncode, 2)
        done = self.measure(twin, "--sweep", "memory")
        self.assertEqual(done.returncode, 125)
        self.assertIn("memory clock", done.stderr)
        self.table.write_text("mine\n")
        done = self.measure(twin)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--force", done.stderr)
        self.assertEqual(self.table.read_text(), "mine\n")
        done = self.gpoeo("measure", "--twin", twin, "--output", "x.csv", "--", "/no/such/program")
        self.assertEqual(done.returncode, 127, done.stderr)
        self.assertEqual(self.gpoeo("measure", "--check", str(self.table)).returncode, 2)


if __name__ == "__main__":
    unittest.main()
