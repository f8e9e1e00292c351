// SPDX-License-Identifier: Apache-2.0
#include "control/child.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace gpoeo::control {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);

class ChildTest : public ::testing::Test {
 protected:
  // Each test leaves the signal mask as it found it.
  void SetUp() override { pthread_sigmask(SIG_SETMASK, nullptr, &before_); }
  void TearDown() override { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  static Child started(const std::vector<std::string>& command,
                       const Child::Environment& added = {}) {
    auto child = Child::start(command, added, BlockedSignals());
    if (!child) ADD_FAILURE() << child.error().text;
    return std::move(child).value();
  }
  static ExitStatus end_of(Child& child) {
    const Wake wake = child.wait(kPatience);
    EXPECT_EQ(wake.kind, Wake::Kind::kExited);
    return wake.exit;
  }
  static int shell(const std::string& script, const Child::Environment& added = {}) {
    Child child = started({"/bin/sh", "-c", script}, added);
    return end_of(child).code;
  }
  static std::filesystem::path scratch(const std::string& name) {
    return std::filesystem::path(::testing::TempDir()) /
           ("child_test_" + std::to_string(::getpid()) + "_" + name);
  }

 private:
  sigset_t before_;
};

TEST_F(ChildTest, PassesExitCodesThrough) {
  EXPECT_EQ(shell("exit 0"), 0);
  EXPECT_EQ(shell("exit 7"), 7);
  EXPECT_EQ(shell("exit 255"), 255);
}

TEST_F(ChildTest, DeathBySignalIsAShells128PlusN) {
  Child child = started({"/bin/sh", "-c", "kill -SEGV $$"});
  const ExitStatus exit = end_of(child);
  EXPECT_EQ(exit.code, 128 + SIGSEGV);
  EXPECT_EQ(exit.signal, SIGSEGV);
}

// A driver library starts threads of its own, which block nothing we do not block before.
TEST_F(ChildTest, EndIsSeenWhateverOtherThreadsBlock) {
  std::atomic<bool> done = false;
  std::thread driver([&] {
    while (!done) std::this_thread::yield();
  });
  EXPECT_EQ(shell("exit 7"), 7);
  done = true;
  driver.join();
}

TEST_F(ChildTest, SignalsComeToTheWaitingThreadAndNoOther) {
  const BlockedSignals signals;
  std::atomic<bool> done = false;
  std::thread driver([&] {
    while (!done) std::this_thread::yield();
  });
  auto child = Child::start({"/bin/sh", "-c", "exec sleep 60"}, {}, signals);
  ASSERT_TRUE(child) << child.error().text;
  ::kill(::getpid(), SIGTERM);  // would end the test if any thread took it
  const Wake wake = child->wait(kPatience);
  EXPECT_EQ(wake.kind, Wake::Kind::kSignal);
  EXPECT_EQ(wake.signal, SIGTERM);
  child->forward(SIGTERM);
  EXPECT_EQ(end_of(*child).signal, SIGTERM);
  done = true;
  driver.join();
}

TEST_F(ChildTest, ExecErrorsAreTold) {
  const auto missing = Child::start({"/no/such/program"}, {}, BlockedSignals());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::kNotFound) << "exit 127";
  EXPECT_NE(missing.error().text.find("/no/such/program"), std::string::npos);
  const auto file = scratch("not_executable");
  std::ofstream(file) << "#!/bin/sh\n";
  std::filesystem::permissions(file, std::filesystem::perms::owner_read);
  const auto refused = Child::start({file.string()}, {}, BlockedSignals());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kNoPermission) << "exit 126";
  std::filesystem::remove(file);
}

TEST_F(ChildTest, TheJobGetsTheSignalMaskThatWeWereGiven) {
  const BlockedSignals signals;
  // A job that inherited our blocked TERM could not be ended by it.
  auto child = Child::start({"/bin/sh", "-c", "kill -TERM $$; exit 3"}, {}, signals);
  ASSERT_TRUE(child) << child.error().text;
  EXPECT_EQ(end_of(*child).signal, SIGTERM);
}

TEST_F(ChildTest, EnvironmentIsAddedAndReplaced) {
  ::setenv("GPOEO_CHILD_TEST", "old", 1);
  ::setenv("GPOEO_CHILD_TEST_LONGER", "kept", 1);
  EXPECT_EQ(shell("test \"$GPOEO_CHILD_TEST\" = old"), 0);
  EXPECT_EQ(shell("test \"$GPOEO_CHILD_TEST $GPOEO_CHILD_TEST_LONGER $ADDED\" = 'new kept a=b' && "
                  "test $(env | grep -c ^GPOEO_CHILD_TEST=) = 1",
                  {{"GPOEO_CHILD_TEST", "new"}, {"ADDED", "a=b"}}),
            0);
  ::unsetenv("GPOEO_CHILD_TEST");
  ::unsetenv("GPOEO_CHILD_TEST_LONGER");
}

TEST_F(ChildTest, StreamsAndArgumentsAreUntouched) {
  const auto out = scratch("out");
  EXPECT_EQ(shell("printf '%s|' \"$1\" > " + out.string()), 0);
  Child child =
      started({"/bin/sh", "-c", "printf '%s|' \"$@\" > " + out.string(), "sh", "a b", "", "*"});
  EXPECT_EQ(end_of(child).code, 0);
  std::ifstream in(out);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(text, "a b||*|");
  std::filesystem::remove(out);
}

TEST_F(ChildTest, ASignalToUsWakesAndGoesOnWhenForwarded) {
  Child child = started({"/bin/sh", "-c", "trap 'exit 33' TERM; while :; do sleep 0.05; done"});
  ::kill(::getpid(), SIGTERM);
  const Wake wake = child.wait(kPatience);
  ASSERT_EQ(wake.kind, Wake::Kind::kSignal);
  EXPECT_EQ(wake.signal, SIGTERM);
  EXPECT_FALSE(wake.from_terminal);
  child.forward(SIGTERM);
  const ExitStatus exit = end_of(child);
  EXPECT_TRUE(exit.code == 33 || exit.code == 128 + SIGTERM)
      << exit.code << ": the trap's code, or the signal came before the trap was set";
  child.forward(SIGTERM);  // gone already: no error
}

TEST_F(ChildTest, AnEndThatWasSeenStaysTheSame) {
  Child child = started({"/bin/sh", "-c", "exit 5"});
  EXPECT_EQ(end_of(child).code, 5);
  EXPECT_EQ(end_of(child).code, 5);
}

TEST_F(ChildTest, AStoppedChildHasNotEnded) {
  Child child = started({"/bin/sh", "-c", "while :; do sleep 0.05; done"});
  ::kill(child.pid(), SIGSTOP);
  EXPECT_EQ(child.wait(std::chrono::milliseconds(50)).kind, Wake::Kind::kTimeout);
  ::kill(child.pid(), SIGCONT);
  EXPECT_EQ(child.wait(std::chrono::milliseconds(50)).kind, Wake::Kind::kTimeout);
  ::kill(child.pid(), SIGKILL);
  EXPECT_EQ(end_of(child).code, 128 + SIGKILL);
}

// Under nohup SIGHUP is ignored, and the job must go on ignoring it.
TEST_F(ChildTest, AnIgnoredHangUpStaysIgnored) {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  struct sigaction before {};
  ::sigaction(SIGHUP, &ignore, &before);
  Child child = started({"/bin/sh", "-c", "kill -HUP $$; exit 4"});
  EXPECT_EQ(end_of(child).code, 4);
  Child other = started({"/bin/sh", "-c", "while :; do sleep 0.05; done"});
  ::kill(::getpid(), SIGHUP);
  EXPECT_EQ(other.wait(std::chrono::milliseconds(50)).kind, Wake::Kind::kTimeout)
      << "we ignore it too: neither passed on nor a reason to give clocks back";
  ::kill(other.pid(), SIGKILL);
  end_of(other);
  ::sigaction(SIGHUP, &before, nullptr);
}

}  // namespace
}  // namespace gpoeo::control
