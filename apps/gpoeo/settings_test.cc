// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace gpoeo::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SettingsTest : public ::testing::Test {
 protected:
  SettingsTest() {
    std::string name = ::testing::TempDir() + "/gpoeo_settings_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder = name;
    for (const auto& key : Settings::known_keys()) ::unsetenv(variable(key).c_str());
  }
  ~SettingsTest() override {
    std::filesystem::remove_all(folder);
    for (const auto& key : Settings::known_keys()) ::unsetenv(variable(key).c_str());
  }
  static std::string variable(std::string key) {
    for (char& c : key) c = c == '-' ? '_' : static_cast<char>(std::toupper(c));
    return "GPOEO_" + key;
  }
  std::filesystem::path file(const std::string& name, const std::string& text) {
    std::ofstream(folder / name) << text;
    return folder / name;
  }
  std::string error_of(const std::string& text) {
    const auto loaded = Settings::load({file("bad.toml", text)});
    EXPECT_FALSE(loaded) << text;
    return loaded ? "" : loaded.error().text;
  }

  std::filesystem::path folder;
};

TEST_F(SettingsTest, FilesThatAreNotThereAreFine) {
  const auto s = Settings::load({folder / "none.toml"});
  ASSERT_TRUE(s);
  EXPECT_FALSE(s->get("policy"));
  EXPECT_TRUE(s->files_read().empty());
}

TEST_F(SettingsTest, ValuesOfEveryKindWithWhereTheyCameFrom) {
  const auto path = file("a.toml",
                         "# comment\npolicy = \"static:1200\"\nmax-slowdown = 0.05\n"
                         "twin-speed = 10\nstrict = true\nquiet = false\n");
  const auto s = Settings::load({path});
  ASSERT_TRUE(s) << s.error().text;
  EXPECT_EQ(s->get("policy")->text, "static:1200");
  EXPECT_EQ(s->get("policy")->source, path.string() + ":2");
  EXPECT_EQ(s->get("max-slowdown")->text, "0.05");
  EXPECT_EQ(s->get("twin-speed")->text, "10");
  EXPECT_EQ(s->get("strict")->text, "true");
  EXPECT_EQ(s->get("quiet")->text, "false");
  EXPECT_FALSE(s->get("gpus"));
  EXPECT_THAT(s->files_read(), ElementsAre(path.string()));
}

TEST_F(SettingsTest, LaterFilesAndThenTheEnvironmentWin) {
  const auto system = file("system.toml", "policy = \"default\"\ngpus = \"0\"\n");
  const auto own = file("own.toml", "policy = \"search\"\n");
  const auto s = Settings::load({system, own});
  ASSERT_TRUE(s);
  EXPECT_EQ(s->get("policy")->text, "search");
  EXPECT_EQ(s->get("gpus")->text, "0") << "key by key";
  ::setenv("GPOEO_MAX_SLOWDOWN", "3%", 1);
  ::setenv("GPOEO_POLICY", "static:900", 1);
  EXPECT_EQ(s->get("max-slowdown")->text, "3%");
  EXPECT_EQ(s->get("policy")->text, "static:900");
  EXPECT_EQ(s->get("policy")->source, "GPOEO_POLICY");
  ::setenv("GPOEO_POLICY", "", 1);
  EXPECT_EQ(s->get("policy")->text, "search") << "an empty variable is none";
}

TEST_F(SettingsTest, BadFilesAreRefusedWithFileLineAndKey) {
  EXPECT_THAT(error_of("policy = \"search\"\nmax_slowdown = 0.05\n"), HasSubstr("bad.toml:2"));
  EXPECT_THAT(error_of("max_slowdown = 0.05\n"), HasSubstr("max_slowdown"));
  EXPECT_THAT(error_of("max_slowdown = 0.05\n"), HasSubstr("max-slowdown")) << "what there is";
  EXPECT_THAT(error_of("\npolicy = [1, 2]\n"), HasSubstr("bad.toml:2"));
  EXPECT_THAT(error_of("policy = [1, 2]\n"), HasSubstr("'policy' must be"));
  EXPECT_THAT(error_of("[policy]\nx = 1\n"), HasSubstr("'policy' must be"));
  EXPECT_THAT(error_of("gpus = 2024-01-01\n"), HasSubstr("'gpus' must be"));
  EXPECT_THAT(error_of("policy = \n"), HasSubstr("not TOML"));
  EXPECT_THAT(error_of(std::string("\x00\xff", 2)), HasSubstr("bad.toml:1"));
  EXPECT_EQ(error_of("policy = \"a\nb\"\n").find('\n'), std::string::npos) << "one line";
}

TEST_F(SettingsTest, AFolderOrAnUnreadableFileIsAnErrorThatNamesIt) {
  std::filesystem::create_directory(folder / "c.toml");
  const auto loaded = Settings::load({folder / "c.toml"});
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().text, HasSubstr("c.toml"));
}

TEST_F(SettingsTest, DefaultFilesFollowXdgThenHome) {
  ::setenv("XDG_CONFIG_HOME", "/x", 1);
  EXPECT_THAT(Settings::default_files(),
              ElementsAre("/etc/gpoeo/config.toml", "/x/gpoeo/config.toml", ".gpoeo.toml"));
  ::unsetenv("XDG_CONFIG_HOME");
  ::setenv("HOME", "/h", 1);
  EXPECT_THAT(Settings::default_files(),
              ElementsAre("/etc/gpoeo/config.toml", "/h/.config/gpoeo/config.toml", ".gpoeo.toml"));
}

}  // namespace
}  // namespace gpoeo::app
