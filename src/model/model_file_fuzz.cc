// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: no bytes may crash the reader of model files, or a prediction by what it takes.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/model_file.h"
#include "model/predictor.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpoeo::model;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)Predictor::parse(text, "fuzz");
  // Behind the checksum, which no fuzzer guesses.
  const auto model = parse_model_body(text, "fuzz");
  if (!model) return 0;
  Device device;
  device.sm_mhz = 1410;
  device.memory_mhz = 1593;
  device.power_limit_w = 500;
  Profile profile;
  profile.power_w = 300;
  (void)model->predict(device, profile, {{1593, {210, 1000, 1410}}, {800, {210, 1410}}});
  (void)model->to_text();
  return 0;
}
