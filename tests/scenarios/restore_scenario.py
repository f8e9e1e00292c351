# SPDX-License-Identifier: Apache-2.0
"""However a run ends, the clocks are as they were before it."""

import os
import signal
import subprocess
import unittest

from scene import GPOEO, TWIN_JOB, Scenario, wait_until

BEFORE = [210, 1200]  # a lock that somebody else had set


class RunningJob(Scenario):
    def run_until_locked(self, twin, *job, before=None, options=()):
        """Starts a long job and waits until gpoeo has set another clock than `before`."""
        process = self.start("run", "--twin", twin, *options, "--", *job)
        wait_until(lambda: self.locks(twin)[0] not in (None, before), "gpoeo sets a clock")
        return process


class Restore(RunningJob):
    def check_ends_restored(self, before, end):
        twin = self.twin_up()
        if before:
            self.locks(twin, *before)
        process = self.run_until_locked(twin, TWIN_JOB, "lstm", "--seconds", "100000", before=before)
        code = end(process)
        _, messages = process.communicate(timeout=60)
        self.assertEqual(process.returncode, code, messages)
        self.assertEqual(self.locks(twin)[0], before)
        self.assertEqual(self.journals(), [])
        self.assertIn("restored to", messages)

    def check_signal(self, number, before=None):
        def end(process):
            process.send_signal(number)
            return 128 + number
        self.check_ends_restored(before, end)

    def test_sigint(self):
        self.check_signal(signal.SIGINT)

    def test_sigint_with_a_lock_before(self):
        self.check_signal(signal.SIGINT, BEFORE)

    def test_sigterm(self):
        self.check_signal(signal.SIGTERM)

    def test_sigterm_with_a_lock_before(self):
        self.check_signal(signal.SIGTERM, BEFORE)

    def test_sighup(self):
        self.check_signal(signal.SIGHUP, BEFORE)

    def check_job_end(self, before, job, code):
        twin = self.twin_up(speed=60)
        if before:
            self.locks(twin, *before)
        done = self.gpoeo("run", "--twin", twin, "--", TWIN_JOB, "lstm", *job)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn("search: SM", done.stderr, "a clock was set on the way")
        self.assertEqual(self.locks(twin)[0], before)
        self.assertEqual(self.journals(), [])

    def test_normal_end(self):
        self.check_job_end(None, ["--seconds", "120"], 0)

    def test_normal_end_with_a_lock_before(self):
        self.check_job_end(BEFORE, ["--seconds", "120"], 0)

    def test_job_crash(self):
        self.check_job_end(None, ["--seconds", "1000", "--crash-after", "120"], 128 + signal.SIGABRT)

    def test_job_crash_with_a_lock_before(self):
        self.check_job_end(BEFORE, ["--seconds", "1000", "--crash-after", "120"], 128 + signal.SIGABRT)

    def test_a_write_that_fails_on_the_second_of_two_gpus(self):
        twin = self.twin_up(cards=2, speed=60)
        self.locks(twin, *BEFORE)
        self.assertEqual(self.gpoeo("twin", "fault", twin, "--card", "1", "--write", "1",
                                    "--kind", "io").returncode, 0)
        done = self.gpoeo("run", "--twin", twin, "--", TWIN_JOB, "lstm", "--seconds", "120")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("clocks cannot be set", done.stderr)
        self.assertEqual(self.locks(twin), [BEFORE, BEFORE])
        self.assertEqual(self.journals(), [])

    def test_a_later_write_that_fails(self):
        twin = self.twin_up(speed=60)
        self.assertEqual(self.gpoeo("twin", "fault", twin, "--write", "2", "--kind", "io").returncode, 0)
        done = self.gpoeo("run", "--twin", twin, "--", TWIN_JOB, "lstm", "--seconds", "120")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("clocks cannot be set", done.stderr)
        self.assertEqual(self.locks(twin), [None])

    def test_a_gpu_that_is_lost_and_comes_back(self):
        twin = self.twin_up(speed=20)
        process = self.run_until_locked(twin, TWIN_JOB, "lstm", "--seconds", "600")
        self.gpoeo("twin", "fault", twin, "--lost", "on")
        _, messages = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, "the job's own exit code")
        self.assertIn("NOT RESTORED", messages)
        self.assertEqual(len(self.journals()), 1, "what could not be restored stays in the journal")
        self.gpoeo("twin", "fault", twin, "--lost", "off")
        wait_until(lambda: self.journals() == [], "the guardian restores once the GPU is back")
        self.assertEqual(self.locks(twin), [None])


class Unread(RunningJob):
    """Nobody reads our messages: the job's exit code and its clocks do not depend on it."""

    def test_messages_into_a_closed_pipe(self):
        twin = self.twin_up(speed=60)
        done = subprocess.run(
            ["bash", "-c", '"$0" "$@" 2> >(head -2 >/dev/null); exit $?', GPOEO, "run", "--twin", twin, "--",
             TWIN_JOB, "lstm", "--seconds", "200"],
            env=self.env, cwd=self.folder, stdout=subprocess.DEVNULL, timeout=60)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.locks(twin), [None])

    def test_messages_into_a_full_pipe(self):
        twin = self.twin_up(speed=60)
        read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)
        try:
            while True:
                os.write(write_end, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(write_end, True)
        run = subprocess.Popen([GPOEO, "run", "--twin", twin, "--json", "--", TWIN_JOB, "lstm", "--seconds", "200"],
                               env=self.env, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=write_end,
                               start_new_session=True)
        self.processes.append(run)
        self.assertEqual(run.wait(timeout=60), 0)
        self.assertEqual(self.locks(twin), [None])
        os.close(read_end)
        os.close(write_end)


class Killed(RunningJob):
    def kill_and_leave(self, before, guardian):
        twin = self.twin_up()
        if before:
            self.locks(twin, *before)
        options = () if guardian else ("--no-guardian",)
        process = self.run_until_locked(twin, TWIN_JOB, "lstm", "--seconds", "100000", before=before,
                                        options=options)
        process.kill()
        process.wait()
        return twin

    def test_reset_restores_from_the_journal(self):
        for before in (None, BEFORE):
            twin = self.kill_and_leave(before, guardian=False)
            self.assertNotEqual(self.locks(twin)[0], before, "nobody has restored it yet")
            self.assertEqual(len(self.journals()), 1)
            reset = self.gpoeo("reset")
            self.assertEqual(reset.returncode, 0, reset.stderr)
            self.assertEqual(self.locks(twin)[0], before)
            self.assertEqual(self.journals(), [])

    def test_the_guardian_restores_by_itself(self):
        twin = self.kill_and_leave(BEFORE, guardian=True)
        wait_until(lambda: self.locks(twin)[0] == BEFORE, "the guardian restores")
        wait_until(lambda: self.journals() == [], "the journal is settled")

    def test_a_lost_gpu_does_not_hold_up_the_others(self):
        twin = self.twin_up(cards=2)
        process = self.start("run", "--twin", twin, "--", TWIN_JOB, "lstm", "--seconds", "100000")
        wait_until(lambda: None not in self.locks(twin), "both cards are locked")
        self.gpoeo("twin", "fault", twin, "--card", "0", "--lost", "on")
        process.kill()
        process.wait()
        wait_until(lambda: len(self.journals()) == 1, "the card that is there is restored")
        self.gpoeo("twin", "fault", twin, "--card", "0", "--lost", "off")
        wait_until(lambda: self.journals() == [], "and the other when it is back")
        self.assertEqual(self.locks(twin), [None, None])

    def test_the_next_run_heals_what_a_killed_one_left(self):
        twin = self.kill_and_leave(None, guardian=False)
        done = self.gpoeo("run", "--twin", twin, "--policy", "default", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("left by an earlier gpoeo", done.stderr)
        self.assertEqual(self.locks(twin)[0], None)

    def test_reset_leaves_a_living_run_alone(self):
        twin = self.twin_up()
        process = self.run_until_locked(twin, TWIN_JOB, "lstm", "--seconds", "100000")
        reset = self.gpoeo("reset")
        self.assertEqual(reset.returncode, 125)
        self.assertIn(f"pid {process.pid}", reset.stderr)
        self.assertNotEqual(self.locks(twin)[0], None)


if __name__ == "__main__":
    unittest.main(verbosity=2)
