// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

namespace gpoeo {
namespace {

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "gpoeo-file-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(FileTest, DurableWriteReplacesAndLeavesNoTemporary) {
  const auto path = folder_ / "journal.json";
  ASSERT_TRUE(write_file_durably(path, "one"));
  ASSERT_TRUE(write_file_durably(path, "two"));
  EXPECT_EQ(read_file(path).value(), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
  ASSERT_TRUE(remove_file_durably(path));
  EXPECT_TRUE(remove_file_durably(path)) << "removing what is not there is fine";
}

TEST_F(FileTest, OutputGoesThroughWhatIsThereAndReplacesNothing) {
  const auto target = folder_ / "target";
  ASSERT_TRUE(write_output_file(target, "a longer text"));
  std::filesystem::create_symlink(target, folder_ / "link");
  ASSERT_TRUE(write_output_file(folder_ / "link", "short"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_file(target).value(), "short");
  ASSERT_TRUE(write_output_file("/dev/null", "x"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST_F(FileTest, ErrorsNameThePath) {
  const auto missing = read_file(folder_ / "nothing");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::kNotFound);
  EXPECT_NE(missing.error().text.find("nothing"), std::string::npos);
}

TEST_F(FileTest, RefusesFilesLargerThanAsked) {
  ASSERT_TRUE(write_file_durably(folder_ / "big", std::string(100, 'x')));
  EXPECT_EQ(read_file(folder_ / "big", 99).error().kind, ErrorKind::kInvalid);
}

TEST_F(FileTest, DoesNotTrustWhatOthersMayWrite) {
  const auto path = folder_ / "journal.json";
  ASSERT_TRUE(write_file_durably(path, "x"));
  EXPECT_TRUE(check_trusted_file(path));
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  EXPECT_EQ(check_trusted_file(path).error().kind, ErrorKind::kNoPermission);
  std::filesystem::create_symlink(path, folder_ / "link");
  EXPECT_FALSE(check_trusted_file(folder_ / "link"));
}

TEST_F(FileTest, PrivateDirectoryIsCreatedAndHeldToTheRule) {
  const auto path = folder_ / "a" / "b";
  ASSERT_TRUE(ensure_private_directory(path));
  EXPECT_TRUE(ensure_private_directory(path));
  ASSERT_EQ(chmod(path.c_str(), 0777), 0);
  EXPECT_EQ(ensure_private_directory(path).error().kind, ErrorKind::kNoPermission);
}

// `gpoeo detect <(zcat trace.csv.gz)`.
TEST(ReadFile, ReadsAPipe) {
  const std::string path = ::testing::TempDir() + "/pipe_" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(path) << "hello"; });
  const auto content = read_file(path, 100);
  writer.join();
  ::unlink(path.c_str());
  ASSERT_TRUE(content) << content.error().text;
  EXPECT_EQ(*content, "hello");
}

}  // namespace
}  // namespace gpoeo
