// SPDX-License-Identifier: Apache-2.0
// From one profile at default clocks to time and energy at every clock pair of the card.
//
//   ln T(x) = level + ln(1 + slope (s(x - knee) - s(x_top - knee)))        x = default clock /
//   clock E = T P,  ln P = mean curve + scores . shared curves
//
// level, slope, knee and scores are a few-parameter physical prior of the profile's activities plus
// boosted trees (docs/models.md). So curves are smooth, time never falls when a clock falls, the
// default setting answers exactly 1, and below the trained clocks the same law carries on.
//
// Thread rule: immutable once made; const from any thread. Errors: kInvalid for a file that is
// damaged, too new or not a model; kNotSupported for another GPU's.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/features.h"

namespace gpoeo::model {

struct Fitted;  // the trained numbers: fitted.h

// Ratios over the default setting's, with standard errors (a 90 % interval is +-1.645 of them on
// the logarithm: value * exp(+-1.645 error / value)).
struct PointPrediction {
  double sm_mhz = 0;
  std::optional<double> memory_mhz{};
  double time = 1;
  double time_error = 0;
  double energy = 1;
  double energy_error = 0;
};

// What the model's header says of it.
struct ModelFacts {
  std::string device;         // name of the GPU it is for, or "any"
  std::string gpoeo_version;  // that trained it
  std::string trained_on;     // what the training set is, in words: measured or generated
  std::string training_hash;  // of the set's numbers
  std::size_t workloads = 0;
  std::size_t families = 0;
  double cv_time_error = 0;  // mean absolute relative error over held-out families
  double cv_energy_error = 0;
  // Standard errors of time that a pick by prediction alone must keep in hand, so that at most one
  // in ten held-out workloads broke a 5 % limit by more than half a point.
  double caution = 1;
};

class Predictor {
 public:
  explicit Predictor(std::shared_ptr<const Fitted> fitted);

  // `text`: a whole model file. `name` names it in messages.
  static Result<Predictor> parse(std::string_view text, std::string_view name);
  static Result<Predictor> load(const std::filesystem::path& path);
  // The model in `folder` for this GPU by its file name, or the one for any GPU; kNotFound names
  // both.
  static Result<Predictor> load_for(const Device& device, const std::filesystem::path& folder);
  // Refuses a model of another GPU (kNotSupported) in one line that names both.
  Status check_fits(const Device& device) const;

  const ModelFacts& facts() const;
  // Every clock pair in the order given. The default setting is (device.memory_mhz, device.sm_mhz).
  std::vector<PointPrediction> predict(const Device& device, const Profile& profile,
                                       const std::vector<MemoryClock>& clocks) const;
  std::string to_text() const;

 private:
  std::shared_ptr<const Fitted> fitted_;
};

// "nvidia-a100-sxm4-80gb.gpoeo-model": what a model for the GPU of this name is called.
std::string model_file_name(std::string_view device_name);

}  // namespace gpoeo::model
