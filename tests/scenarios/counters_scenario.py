# SPDX-License-Identifier: Apache-2.0
"""Counters of a twin's job, through the real programs: from outside where the card has GPM, from
the twin's job where it has none, or none at all. Nothing here needs a GPU."""

import csv
import json
import pathlib
import unittest

from scene import TWIN_JOB, Scenario

TABLE = pathlib.Path(__file__).parents[2] / "data" / "tables" / "a100.csv"


def measured(workload):
    rows = [line for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    rows = [row for row in csv.DictReader(rows) if row["workload"] == workload]
    return max(rows, key=lambda row: float(row["sm_clock_mhz"]))


class Counters(Scenario):
    def profile(self, device, job, *options):
        report = self.folder / "report.json"
        done = self.gpoeo("run", "--twin", device, "--twin-speed", "50", "--dry-run", "-q", *options,
                          "--report", str(report), "--", TWIN_JOB, job, "--seconds", "60")
        self.assertEqual(done.returncode, 0, done.stderr)
        profiles = json.loads(report.read_text())["profiles"]
        self.assertEqual(len(profiles), 1, profiles)
        return profiles[0]

    def test_the_a100_has_no_gpm_and_its_job_answers_with_the_measured_activities(self):
        for workload in ("LSTM", "dgemm"):
            profile = self.profile("a100", workload)
            self.assertEqual(profile["source"], "twin job")
            self.assertIn("GPM", profile["why"])
            truth = measured(workload)
            for word in ("gr_active", "sm_active", "dram_active", "fp64_active"):
                self.assertAlmostEqual(profile["activity"][word], float(truth[word]), delta=0.03,
                                       msg=f"{workload} {word}")

    def test_the_h200_is_read_from_outside(self):
        profile = self.profile("h200", "resnet50")
        self.assertEqual(profile["source"], "GPM")
        self.assertIsNone(profile["why"])
        self.assertGreater(profile["activity"]["sm_active"], 0.3)

    def test_who_wants_none_gets_none(self):
        profile = self.profile("h200", "resnet50", "--counters", "none")
        self.assertEqual(profile["source"], "none")
        self.assertEqual(profile["activity"], {})
        self.assertGreater(profile["power_w"], 100)

    def test_a_source_that_does_not_exist_is_refused(self):
        done = self.gpoeo("run", "--twin", "h200", "--counters", "tea", "--", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn("gpm, cupti", done.stderr)

    def test_doctor_says_which(self):
        for device, text in (("h200", "GPM, from outside"), ("a100", "in place of CUPTI")):
            findings = json.loads(self.gpoeo("doctor", "--twin", device, "--quick", "--json").stdout)["findings"]
            self.assertIn(text, [f for f in findings if f["subject"] == "counters"][0]["text"])


if __name__ == "__main__":
    unittest.main()
