#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`gpoeo train` and `gpoeo predict`: reproducible, sane, and refusing with the reason."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

GPOEO = pathlib.Path(os.environ["GPOEO_BUILD_DIR"]) / "bin" / "gpoeo"
ROOT = pathlib.Path(__file__).resolve().parents[2]
A100 = ROOT / "data" / "tables" / "a100.csv"
MODELS = ROOT / "data" / "models"


def gpoeo(*arguments):
    return subprocess.run([GPOEO, *map(str, arguments)], capture_output=True, text=True)


class Model(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def train(self, name):
        path = self.folder / name
        done = gpoeo("train", A100, "--device", "a100", "--rounds", "0", "-o", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("held out: time", done.stderr)
        return path

    def predict(self, model, *more, device="a100"):
        return gpoeo("predict", "--model", model, "--device", device, "--json", *more)

    def test_same_table_gives_the_same_bytes(self):
        self.assertEqual(self.train("a").read_bytes(), self.train("b").read_bytes())

    def test_every_clock_of_the_card_the_default_is_one_and_time_rises(self):
        done = self.predict(self.train("m"), "--table", A100, "--workload", "dgemm")
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        points = answer["points"]
        self.assertEqual([p["sm_mhz"] for p in points], list(range(210, 1411, 15)))
        self.assertEqual((points[-1]["time"], points[-1]["energy"]), (1, 1))
        times = [p["time"] for p in points]
        self.assertEqual(times, sorted(times, reverse=True))
        self.assertTrue(all(p["time_error"] > 0 for p in points[:-1]))
        self.assertLess(answer["pick"]["energy"], 1)

    def test_profile_from_json_and_what_it_may_not_hold(self):
        model = self.train("m")
        profile = self.folder / "p.json"
        profile.write_text('{"power_w": 250, "gr_active": 0.9, "dram_active": 0.2, "sm_active": null}')
        self.assertEqual(self.predict(model, "--profile", profile).returncode, 0)
        for text, reason in (('{"power_w": 250, "gr_activ": 1}', "gr_activ"), ('{"power_w": 0}', "power_w"),
                             ('{"power_w": -5}', "above 0 W"), ('{"power_w": NaN}', "p.json"),
                             ('{"power_w": 1e9}', "limit of 500 W"), ('{"power_w": 250000}', "in watts?"),
                             ('{"power_w": 250, "sm_active": 90}', "sm_active 90 is no fraction"),
                             ('{"power_w": 250, "utilization": 98}', "utilization 98 is no fraction"),
                             ("{}", "power_w"), ("[", "p.json")):
            profile.write_text(text)
            done = self.predict(model, "--profile", profile)
            self.assertEqual(done.returncode, 2)
            self.assertIn(reason, done.stderr)

    def test_wrong_truncated_newer_and_other_gpus_models_are_refused(self):
        text = self.train("m").read_text()
        bad = self.folder / "bad"
        for content, reason in ((text[:4000], "truncated"), (text.replace("x", "y"), "checksum"),
                                (text.replace("gpoeo-model 1", "gpoeo-model 7"), "newer GPOEO"),
                                ("hello", "not a GPOEO model")):
            bad.write_text(content)
            done = self.predict(bad, "--table", A100, "--workload", "dgemm")
            self.assertEqual(done.returncode, 2)
            self.assertIn(reason, done.stderr)
        done = self.predict(self.folder / "m", "--table", A100, "--workload", "dgemm", device="h200")
        self.assertEqual(done.returncode, 2)
        self.assertIn("NVIDIA H200", done.stderr)

    def test_shipped_models_answer_for_every_simulated_card(self):
        profile = self.folder / "p.json"
        profile.write_text('{"power_w": 180, "gr_active": 0.95, "dram_active": 0.3, "sm_active": 0.9}')
        for device, model in (("a100", "nvidia-a100-sxm4-80gb"), ("rtx3080ti", "nvidia-geforce-rtx-3080-ti"),
                              ("h200", "nvidia-h200"), ("v100", "tesla-v100-sxm2-16gb"),
                              ("titanx", "nvidia-geforce-gtx-titan-x"), ("h200", "any")):
            done = self.predict(MODELS / f"{model}.gpoeo-model", "--profile", profile, device=device)
            self.assertEqual(done.returncode, 0, done.stderr)
            for p in json.loads(done.stdout)["points"]:
                self.assertTrue(0.05 < p["energy"] < 50 and 0.9 < p["time"] < 50, (device, p))

    def test_usage(self):
        self.assertEqual(gpoeo("train", A100, "--device", "a100").returncode, 2)  # nothing to do
        done = gpoeo("train", A100, "-o", self.folder / "m")
        self.assertEqual(done.returncode, 2)
        self.assertIn("@a100", done.stderr)


if __name__ == "__main__":
    unittest.main()
