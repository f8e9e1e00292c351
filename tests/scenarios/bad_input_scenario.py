# SPDX-License-Identifier: Apache-2.0
"""Bad input: one clear line that names what is wrong and the cure; the job is never half-started."""

import json
import os
import unittest

from scene import TWIN_JOB, Scenario


class BadInput(Scenario):
    def refused(self, *arguments, code, names, env=None):
        marker = self.folder / "started"
        job = ["--", "touch", str(marker)]
        if env:
            self.env |= env
        done = self.gpoeo("run", *arguments, *job)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertFalse(marker.exists(), "the job must not have started")
        lines = [line for line in done.stderr.splitlines() if "error" in line]
        self.assertEqual(len(lines), 1, done.stderr)
        for name in names:
            self.assertIn(name, lines[0])
        self.assertEqual(done.stdout, "")

    def test_unknown_twin(self):
        self.refused("--twin", "b9000", code=125, names=["b9000", "a100"])

    def test_unknown_gpu(self):
        self.refused("--twin", "a100", "--gpus", "7", code=125, names=["7"])

    def test_cards_of_two_kinds(self):
        self.refused("--twin", "a100+v100", "--strict", code=125, names=["A100", "V100", "--gpus"])
        report = self.folder / "report.json"
        done = self.gpoeo("run", "--twin", "a100+v100", "--report", str(report), "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("V100", json.loads(report.read_text())["measure_only_reason"])
        done = self.gpoeo("run", "--twin", "a100+v100", "--gpus", "1", "--report", str(report), "--", "true")
        self.assertIsNone(json.loads(report.read_text())["measure_only_reason"])

    def test_bad_percentage(self):
        self.refused("--twin", "a100", "--max-slowdown", "fast", code=2, names=["--max-slowdown", "fast", "5%"])

    def test_bad_percentage_in_the_environment(self):
        self.refused("--twin", "a100", code=2, names=["GPOEO_MAX_SLOWDOWN", "lots"],
                     env={"GPOEO_MAX_SLOWDOWN": "lots"})

    def test_unknown_policy(self):
        self.refused("--twin", "a100", "--policy", "magic", code=2, names=["magic", "gpoeo"])

    def test_a_clock_that_the_card_does_not_have(self):
        for mhz, nearest in (("1", "210"), ("99999", "1410")):
            self.refused("--twin", "a100", "--policy", f"static:{mhz}", code=125,
                         names=[f"static:{mhz}", "210 to 1410", f"static:{nearest}"])
        self.refused("--twin", "a100", "--policy", "power-limit:1", code=125, names=["power-limit:1", "100 to 500"])
        done = self.gpoeo("run", "--twin", "a100", "--policy", "static:1201", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("static:1201: no SM clock of this card; 1200 MHz is held (1200 and 1215", done.stderr)
        done = self.gpoeo("run", "--twin", "a100", "--policy", "static:1200", "--", "true")
        self.assertNotIn("no SM clock", done.stderr)

    def test_unreadable_config(self):
        config = self.folder / ".gpoeo.toml"
        config.mkdir()
        self.refused("--twin", "a100", code=2, names=[".gpoeo.toml"])

    def test_config_that_is_not_toml(self):
        (self.folder / ".gpoeo.toml").write_text("policy = \n")
        self.refused("--twin", "a100", code=2, names=[".gpoeo.toml:1"])

    def test_config_with_an_unknown_key(self):
        (self.folder / ".gpoeo.toml").write_text('polcy = "gpoeo"\n')
        self.refused("--twin", "a100", code=2, names=[".gpoeo.toml:1", "polcy", "policy"])

    def test_corrupt_device_file(self):
        device = self.folder / "card.toml"
        device.write_text("name = 3\n")
        self.refused("--twin", str(device), code=125, names=["card.toml"])

    def test_state_folder_that_others_can_write(self):
        state = self.folder / "state"
        state.mkdir()
        state.chmod(0o777)
        self.refused("--twin", "a100", "--strict", code=125, names=["state", "chmod"])

    def test_empty_command(self):
        for command in ([], ["--"], ["--", ""]):
            done = self.gpoeo("run", "--twin", "a100", *command)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("no command", done.stderr)

    def test_command_that_is_not_there(self):
        done = self.gpoeo("run", "--twin", "a100", "--", "no-such-program-anywhere")
        self.assertEqual(done.returncode, 127, done.stderr)
        self.assertIn("no-such-program-anywhere", done.stderr)

    def test_command_that_is_not_executable(self):
        script = self.folder / "script.sh"
        script.write_text("echo\n")
        done = self.gpoeo("run", "--twin", "a100", "--", str(script))
        self.assertEqual(done.returncode, 126, done.stderr)

    def test_nothing_is_left_behind(self):
        before = set(os.listdir("/dev/shm"))
        self.gpoeo("run", "--twin", "a100", "--", "no-such-program-anywhere")
        self.gpoeo("run", "--twin", "a100", "--", "true")
        self.assertEqual({n for n in set(os.listdir("/dev/shm")) - before if n.startswith("gpoeo")}, set())
        self.assertEqual(self.journals(), [])


class PassedThrough(Scenario):
    def test_exit_codes_of_the_job(self):
        for code in (0, 3, 99):
            done = self.gpoeo("run", "--twin", "a100", "--", "sh", "-c", f"exit {code}")
            self.assertEqual(done.returncode, code, done.stderr)
        done = self.gpoeo("run", "--twin", "a100", "--", "sh", "-c", "kill -KILL $$")
        self.assertEqual(done.returncode, 128 + 9)

    def test_streams_of_the_job(self):
        done = self.gpoeo("run", "--twin", "a100", "--quiet", "--", "sh", "-c", "cat; echo problem >&2",
                          input="through\n")
        self.assertEqual(done.stdout, "through\n")
        self.assertEqual(done.stderr, "problem\n")

    def test_arguments_that_look_like_ours(self):
        for dashes in (["--"], []):
            done = self.gpoeo("run", "--twin", "a100", "-q", *dashes, "echo", "--policy", "x", "--", "y")
            self.assertEqual(done.stdout, "--policy x -- y\n", done.stderr)

    def test_a_job_without_iterations_claims_nothing(self):
        done = self.gpoeo("run", "--twin", "a100", "--twin-speed", "20", "--", "sleep", "1")
        self.assertEqual(done.returncode, 0)
        self.assertIn("saving           unknown", done.stderr)
        self.assertIn("never touched", done.stderr)
        self.assertIn("SIMULATED", done.stderr)

    def test_dry_run_sets_nothing(self):
        twin = self.twin_up(speed=60)
        done = self.gpoeo("run", "--twin", twin, "--dry-run", "--", TWIN_JOB, "lstm", "--seconds", "60")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("would set SM", done.stderr)
        self.assertIn("never touched", done.stderr)
        self.assertEqual(self.locks(twin), [None])


if __name__ == "__main__":
    unittest.main(verbosity=2)
