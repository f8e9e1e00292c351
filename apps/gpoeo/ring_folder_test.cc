// SPDX-License-Identifier: Apache-2.0
#include "ring_folder.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

namespace gpoeo::app {
namespace {

namespace fs = std::filesystem;

class RingFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "gpoeo-folders-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    parent_ = pattern;
  }
  void TearDown() override { fs::remove_all(parent_); }

  // Another gpoeo that has a folder, named as by `pid` in its own container, until ended.
  struct Other {
    pid_t process;
    int end;
    fs::path folder;
  };
  Other start_other(const std::string& pid) {
    int ready[2], end[2];
    EXPECT_EQ(::pipe(ready), 0);
    EXPECT_EQ(::pipe(end), 0);
    const fs::path folder = parent_ / ("gpoeo-rings-" + pid + "-abcdef");
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(end[1]);
      char byte = 'x';
      const auto own = RingFolder::create(parent_);
      // flock() is of the open folder, whatever its name.
      if (!own || ::rename(own->path().c_str(), folder.c_str()) != 0) ::_exit(1);
      if (::write(ready[1], &byte, 1) != 1) ::_exit(1);
      (void)!::read(end[0], &byte, 1);
      ::_exit(0);  // as if killed: nothing is cleaned up
    }
    ::close(ready[1]);
    ::close(end[0]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
    return {child, end[1], folder};
  }
  static void end_other(const Other& other) {
    ::close(other.end);
    int status = 0;
    ::waitpid(other.process, &status, 0);
    EXPECT_EQ(status, 0);
  }
  // A number that no process of this pid namespace has.
  static std::string nobodys_pid() { return "2147483646"; }

  fs::path parent_;
};

TEST_F(RingFolderTest, IsPrivateAndGoesWithItsOwner) {
  fs::path path;
  {
    const auto folder = RingFolder::create(parent_);
    ASSERT_TRUE(folder);
    path = folder->path();
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
    std::ofstream(path / "1.ring") << "x";
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(RingFolderTest, OneThatIsHeldStaysWhateverItsPidSaysHere) {
  const Other other = start_other(nobodys_pid());
  const auto ours = RingFolder::create(parent_);
  EXPECT_TRUE(ours);
  EXPECT_TRUE(fs::exists(other.folder)) << "its owner lives, in another pid namespace";
  end_other(other);
}

TEST_F(RingFolderTest, OneWhoseOwnerIsGoneIsRemovedWhateverItsPidSaysHere) {
  const Other other = start_other(std::to_string(::getpid()));
  std::ofstream(other.folder / "1.ring") << "x";
  end_other(other);
  ASSERT_TRUE(fs::exists(other.folder));
  const auto ours = RingFolder::create(parent_);
  EXPECT_TRUE(ours);
  EXPECT_FALSE(fs::exists(other.folder));
}

TEST_F(RingFolderTest, TwoOfOneProcessDoNotRemoveEachOther) {
  const auto first = RingFolder::create(parent_);
  const auto second = RingFolder::create(parent_);
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(fs::exists(first->path()));
  EXPECT_TRUE(fs::exists(second->path()));
}

TEST_F(RingFolderTest, OtherFoldersAndFilesAreLeftAlone) {
  fs::create_directory(parent_ / "somebodys");
  std::ofstream(parent_ / "gpoeo-rings-1-file") << "x";
  fs::create_directory_symlink(parent_ / "somebodys", parent_ / "gpoeo-rings-1-linked");
  const auto ours = RingFolder::create(parent_);
  ASSERT_TRUE(ours);
  EXPECT_TRUE(fs::exists(parent_ / "somebodys"));
  EXPECT_TRUE(fs::exists(parent_ / "gpoeo-rings-1-file"));
  EXPECT_TRUE(fs::is_symlink(parent_ / "gpoeo-rings-1-linked"));
}

TEST_F(RingFolderTest, AParentThatIsNotThereIsAnError) {
  EXPECT_FALSE(RingFolder::create(parent_ / "missing"));
}

}  // namespace
}  // namespace gpoeo::app
