// SPDX-License-Identifier: Apache-2.0
#include "model/booster.h"

#include <fmt/format.h>
#include <xgboost/c_api.h>

#include <cmath>
#include <limits>

namespace gpoeo::model {
namespace {

// The C API catches its exceptions and answers non-zero.
Status check(int code, std::string_view what) {
  if (code == 0) return {};
  std::string text = XGBGetLastError();
  text = text.substr(0, text.find('\n'));
  return make_error(ErrorKind::kInvalid, fmt::format("XGBoost, {}: {}", what, text));
}

}  // namespace

Result<Rows> Rows::make(std::span<const float> values, std::size_t rows, std::size_t columns) {
  GPOEO_CHECK(values.size() == rows * columns);
  DMatrixHandle handle = nullptr;
  GPOEO_TRY_STATUS(
      check(XGDMatrixCreateFromMat_omp(values.data(), rows, columns,
                                       std::numeric_limits<float>::quiet_NaN(), &handle, 1),
            "rows"));
  Rows out;
  out.handle_ = std::shared_ptr<void>(handle, [](void* h) { XGDMatrixFree(h); });
  out.count_ = rows;
  return out;
}

Status Rows::set_labels(std::span<const float> labels) {
  return check(XGDMatrixSetFloatInfo(handle_.get(), "label", labels.data(), labels.size()),
               "labels");
}

Result<Booster> Booster::make(const Rows& rows, const BoosterOptions& options) {
  BoosterHandle handle = nullptr;
  const DMatrixHandle cache[] = {rows.handle()};
  GPOEO_TRY_STATUS(check(XGBoosterCreate(cache, 1, &handle), "booster"));
  Booster booster;
  booster.handle_ = std::shared_ptr<void>(handle, [](void* h) { XGBoosterFree(h); });
  const std::pair<const char*, std::string> settings[] = {
      {"booster", "gbtree"},
      {"tree_method", "exact"},
      {"objective", "reg:squarederror"},
      {"base_score", "0"},
      {"nthread", "1"},
      {"seed", "1"},
      {"verbosity", "0"},
      {"max_depth", fmt::format("{}", options.depth)},
      {"eta", fmt::format("{}", options.rate)},
      {"lambda", fmt::format("{}", options.ridge)},
      {"min_child_weight", fmt::format("{}", options.least_weight)},
      {"subsample", fmt::format("{}", options.rows)},
      {"colsample_bytree", fmt::format("{}", options.columns)},
  };
  for (const auto& [name, value] : settings)
    GPOEO_TRY_STATUS(check(XGBoosterSetParam(handle, name, value.c_str()), name));
  return booster;
}

Status Booster::boost(const Rows& rows, std::span<const float> gradient,
                      std::span<const float> hessian) {
  std::vector<float> g(gradient.begin(), gradient.end());  // the API takes them writable
  std::vector<float> h(hessian.begin(), hessian.end());
  return check(XGBoosterBoostOneIter(handle_.get(), rows.handle(), g.data(), h.data(), g.size()),
               "boosting");
}

Status Booster::update(const Rows& rows, int round) {
  return check(XGBoosterUpdateOneIter(handle_.get(), round, rows.handle()), "boosting");
}

Result<std::vector<float>> Booster::predict(const Rows& rows) const {
  bst_ulong length = 0;
  const float* values = nullptr;
  constexpr int kMargin = 1;
  GPOEO_TRY_STATUS(
      check(XGBoosterPredict(handle_.get(), rows.handle(), kMargin, 0, 0, &length, &values),
            "prediction"));
  return std::vector<float>(values, values + length);
}

Result<std::string> Booster::to_json() const {
  bst_ulong length = 0;
  const char* text = nullptr;
  GPOEO_TRY_STATUS(check(
      XGBoosterSaveModelToBuffer(handle_.get(), R"({"format":"json"})", &length, &text), "saving"));
  return std::string(text, length);
}

}  // namespace gpoeo::model
