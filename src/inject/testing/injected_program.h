// SPDX-License-Identifier: Apache-2.0
// Fixture: fake_cuda_program in a process of its own, under libgpoeo_inject.so, and its ring.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "wire/ring_reader.h"

namespace gpoeo::inject::testing {

class InjectedProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "gpoeo-inject-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    rings_ = folder_ / "rings";
    std::filesystem::create_directory(rings_);
    environment_ = {{"CUDA_INJECTION64_PATH", GPOEO_INJECT}, {"GPOEO_RING_DIR", rings_.string()}};
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Starts the program and returns at once; its output goes to a file.
  void start(std::vector<std::string> words) {
    int to_it[2];
    ASSERT_EQ(pipe(to_it), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(to_it[0], STDIN_FILENO);
      close(to_it[1]);
      const int out = open((folder_ / "out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(out, STDOUT_FILENO);
      const int err = open((folder_ / "err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(err, STDERR_FILENO);
      for (const auto& [name, value] : environment_) setenv(name.c_str(), value.c_str(), 1);
      std::vector<char*> arguments{const_cast<char*>(program_)};
      for (std::string& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      execv(program_, arguments.data());
      _exit(127);
    }
    close(to_it[0]);
    to_it_ = to_it[1];
  }
  int finish() {
    int status = 0;
    waitpid(pid_, &status, 0);
    close(to_it_);
    return status;
  }
  int run(std::vector<std::string> words) {
    start(std::move(words));
    return finish();
  }
  std::string text(const char* name) { return read_file(folder_ / name).value_or(""); }
  // Until the program waits at its (n-th) "wait".
  void await_waiting(int n = 1) {
    for (int tries = 0; tries < 3000; ++tries) {
      const std::string out = text("out");
      int seen = 0;
      for (std::size_t at = out.find("waiting"); at != std::string::npos;
           at = out.find("waiting", at + 1)) {
        ++seen;
      }
      if (seen >= n) return;
      usleep(10'000);  // another process, on wall time
    }
    FAIL() << "the program did not come so far";
  }
  void go_on() { ASSERT_EQ(write(to_it_, "\n", 1), 1); }

  std::vector<std::filesystem::path> ring_files() const {
    std::vector<std::filesystem::path> files;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(rings_, error))
      files.push_back(entry.path());
    return files;
  }
  wire::RingReader only_ring() {
    const auto files = ring_files();
    EXPECT_EQ(files.size(), 1U);
    return wire::RingReader::open(files.at(0)).value();
  }
  static std::vector<wire::RingRecord> drain(wire::RingReader& ring) {
    std::vector<wire::RingRecord> records;
    EXPECT_TRUE(ring.drain(records));
    return records;
  }

  const char* program_ = GPOEO_FAKE_PROGRAM;
  std::filesystem::path folder_, rings_;
  std::map<std::string, std::string> environment_;
  pid_t pid_ = -1;
  int to_it_ = -1;
};

}  // namespace gpoeo::inject::testing
