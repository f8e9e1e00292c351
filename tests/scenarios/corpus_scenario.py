#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`gpoeo twin corpus`: same seed, same bytes; the table is complete and labelled."""
import csv
import os
import pathlib
import subprocess
import unittest

GPOEO = pathlib.Path(os.environ["GPOEO_BUILD_DIR"]) / "bin" / "gpoeo"


def corpus(*arguments):
    done = subprocess.run([GPOEO, "twin", "corpus", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(text):
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


class Corpus(unittest.TestCase):
    def test_same_seed_gives_the_same_bytes_and_another_seed_others(self):
        first = corpus("--device", "a100", "--jobs", "12", "--seed", "7")
        self.assertEqual(first, corpus("--device", "a100", "--jobs", "12", "--seed", "7"))
        self.assertNotEqual(rows(first), rows(corpus("--device", "a100", "--jobs", "12", "--seed", "8")))

    def test_every_clock_and_one_default_a_job_with_counters_and_limit(self):
        text = corpus("--device", "rtx3080ti", "--jobs", "6")
        self.assertIn("SIMULATED", text.splitlines()[0])
        by_job = {}
        for row in rows(text):
            self.assertTrue(all(row.values()), row)  # nothing unknown in a truth
            by_job.setdefault(row["workload"], []).append(row)
        self.assertEqual(len(by_job), 6)
        for job in by_job.values():
            self.assertEqual([r["sm_clock_mhz"] == "default" for r in job].count(True), 1)
            self.assertEqual({r["power_limit_w"] for r in job}, {"350"})
            self.assertEqual(len(job), 1 + 4 * 127 + 15)

    def test_points_thin_the_clocks_and_keep_the_ends(self):
        clocks = [int(r["sm_clock_mhz"]) for r in rows(corpus("--device", "a100", "--jobs", "1", "--points", "9"))
                  if r["sm_clock_mhz"] != "default"]
        self.assertEqual((clocks[0], clocks[-1], len(clocks)), (210, 1410, 9))

    def test_suite_instead_of_generated_jobs(self):
        names = {r["workload"] for r in rows(corpus("--device", "rtx3080ti", "--suite", "twin-71", "--points", "3"))}
        self.assertEqual(len(names), 71)

    def test_unknown_device_is_refused_with_what_there_is(self):
        done = subprocess.run([GPOEO, "twin", "corpus", "--device", "b9000"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("a100", done.stderr)


if __name__ == "__main__":
    unittest.main()
