// SPDX-License-Identifier: Apache-2.0
#include "bench/priors.h"

#include <optional>
#include <set>

#include "base/log.h"
#include "control/model_prior.h"
#include "model/dataset.h"
#include "model/trainer.h"
#include "twin/data_files.h"

namespace gpoeo::bench {
namespace {

model::Device model_device(const twin::DeviceModel& d) {
  model::Device device;
  device.name = d.name.data();
  device.sm_mhz = d.sm_mhz[static_cast<std::size_t>(d.default_sm)];
  device.power_limit_w = d.limit_default_w;
  device.memory_mhz = d.memory_mhz[0];
  device.sm_count = d.sm_count;
  device.bandwidth_gb_per_s = d.bandwidth_bytes_per_s / 1e9;
  return device;
}

std::vector<model::MemoryClock> clocks_of(const twin::DeviceModel& d) {
  std::vector<model::MemoryClock> clocks;
  for (std::size_t m = 0; m < static_cast<std::size_t>(d.memory_clock_count); ++m) {
    model::MemoryClock& clock = clocks.emplace_back();
    clock.memory_mhz = d.memory_mhz[m];
    for (int s = d.sm_first[m]; s < d.sm_first[m] + d.sm_number[m]; ++s) {
      clock.sm_mhz.push_back(d.sm_mhz[static_cast<std::size_t>(s)]);
    }
  }
  return clocks;
}

}  // namespace

Result<Priors> Priors::train(const Suite& suite) {
  Priors priors;
  if (suite.tables.empty()) {
    GPOEO_TRY(const auto data, twin::data_directory());
    for (const twin::DeviceModel& card : suite.devices) {
      auto predictor = model::Predictor::load_for(model_device(card), data / "models");
      if (!predictor || predictor->facts().cv_time_error > control::kLargestModelError) continue;
      priors.shipped_[card.name.data()] =
          std::make_shared<const model::Predictor>(std::move(*predictor));
    }
    return priors;
  }
  model::Dataset dataset;
  for (const SuiteTable& table : suite.tables) {
    GPOEO_TRY_STATUS(model::add_table(
        dataset, table.table, model_device(suite.devices.at(table.device)), suite.families));
  }
  std::set<std::string> families;
  for (const Subject& subject : suite.subjects) families.insert(subject.family);
  for (const std::string& family : families) {
    const std::vector<std::string> left_out{family};
    auto predictor = model::train_excluding(dataset, left_out, {});
    if (!predictor) {
      // Too little is left to learn from: policies do without.
      log::warning("no model for workloads of family {}: {}", family, predictor.error().text);
      continue;
    }
    if (predictor->facts().cv_time_error > control::kLargestModelError) continue;
    priors.without_[family] = std::make_shared<const model::Predictor>(std::move(*predictor));
  }
  return priors;
}

control::Predict Priors::of(const Suite& suite, const Subject& subject) const {
  const twin::DeviceModel& card = suite.devices.at(subject.device);
  std::shared_ptr<const model::Predictor> predictor;
  if (const auto own = without_.find(subject.family); own != without_.end()) {
    predictor = own->second;
  } else if (const auto any = shipped_.find(card.name.data()); any != shipped_.end()) {
    predictor = any->second;
  }
  if (!predictor) return {};
  return control::predict_with(std::move(predictor),
                               {.device = model_device(card), .clocks = clocks_of(card)});
}

}  // namespace gpoeo::bench
