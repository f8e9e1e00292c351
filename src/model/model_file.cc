// SPDX-License-Identifier: Apache-2.0
// The model file, readable with a pager down to the line "---":
//
//   gpoeo-model 1 crc32=XXXXXXXX bytes=N          over all that follows this line
//   { header: device, version, features with units, training set, errors ... }
//   ---
//   { numbers: the priors, and each forest in XGBoost's JSON fields, those that predict }
#include <fmt/format.h>
#include <zlib.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/file.h"
#include "model/fitted.h"
#include "model/model_file.h"
#include "model/predictor.h"

namespace gpoeo::model {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr std::string_view kMagic = "gpoeo-model ";
constexpr std::string_view kRule = "\n---\n";
constexpr std::size_t kMostBytes = std::size_t{8} << 20;
constexpr std::size_t kMostGrid = 512;
constexpr std::size_t kMostKernel = 2000;
constexpr double kMostValue = 1e6;  // of any trained number

std::unexpected<Error> bad(std::string_view name, std::string_view what) {
  return make_error(
      ErrorKind::kInvalid,
      fmt::format("{}: {}; fetch it again or train one with `gpoeo train`", name, what));
}

std::uint32_t checksum(std::string_view text) {
  return static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
}

template <typename Container>
void require_finite(const Container& values) {
  for (const double v : values)
    if (!std::isfinite(v) || std::abs(v) > kMostValue)
      throw json::other_error::create(501, "a trained number is out of range", nullptr);
}

void require(bool condition, const char* what) {
  if (!condition) throw json::other_error::create(501, what, nullptr);
}

ordered_json header_of(const Fitted& fitted) {
  const ModelFacts& f = fitted.facts;
  ordered_json features = ordered_json::array();
  for (std::size_t k = 0; k < kFeatureCount; ++k) {
    const auto feature = static_cast<Feature>(k);
    features.push_back({{"name", to_string(feature)}, {"unit", unit(feature)}});
  }
  return {{"device", f.device},
          {"gpoeo_version", f.gpoeo_version},
          {"trained_on", f.trained_on},
          {"training_hash", f.training_hash},
          {"workloads", f.workloads},
          {"families", f.families},
          {"cv_time_error", f.cv_time_error},
          {"cv_energy_error", f.cv_energy_error},
          {"caution", f.caution},
          {"time_rounds", fitted.time_rounds},
          {"power_rounds", fitted.power_rounds},
          {"targets", {{"time", "ratio to default clocks"}, {"energy", "ratio to default clocks"}}},
          {"features", features}};
}

void read_header(const json& header, Fitted& fitted) {
  ModelFacts& f = fitted.facts;
  f.device = header.at("device").get<std::string>();
  f.gpoeo_version = header.at("gpoeo_version").get<std::string>();
  f.trained_on = header.at("trained_on").get<std::string>();
  f.training_hash = header.at("training_hash").get<std::string>();
  f.workloads = header.at("workloads").get<std::size_t>();
  f.families = header.at("families").get<std::size_t>();
  f.cv_time_error = header.at("cv_time_error").get<double>();
  f.cv_energy_error = header.at("cv_energy_error").get<double>();
  f.caution = header.at("caution").get<double>();
  require_finite(std::array{f.cv_time_error, f.cv_energy_error, f.caution});
  fitted.time_rounds = header.at("time_rounds").get<int>();
  fitted.power_rounds = header.at("power_rounds").get<int>();
  const json& features = header.at("features");
  require(features.size() == kFeatureCount, "its feature list is not this version's");
  for (std::size_t k = 0; k < kFeatureCount; ++k)
    require(features[k].at("name").get<std::string>() == to_string(static_cast<Feature>(k)) &&
                features[k].at("unit").get<std::string>() == unit(static_cast<Feature>(k)),
            "its feature list is not this version's");
}

ordered_json numbers_of(const Fitted& fitted) {
  ordered_json forests = ordered_json::object();
  for (std::size_t t = 0; t < kTargetCount; ++t)
    if (!fitted.forest_json[t].empty())
      forests[std::string(to_string(static_cast<Target>(t)))] =
          ordered_json::parse(fitted.forest_json[t]);
  return {{"time_prior", fitted.time_prior},
          {"power_basis",
           {{"x", fitted.power_basis.x},
            {"mean", fitted.power_basis.mean},
            {"curves", fitted.power_basis.curves}}},
          {"power_kernel",
           {{"centre", fitted.power_kernel.centre},
            {"scale", fitted.power_kernel.scale},
            {"points", fitted.power_kernel.points},
            {"weights", fitted.power_kernel.weights}}},
          {"time_spread", fitted.time_spread},
          {"energy_spread", fitted.energy_spread},
          {"forests", forests}};
}

void read_basis(const json& from, PowerBasis& basis) {
  basis.x = from.at("x").get<std::vector<double>>();
  basis.mean = from.at("mean").get<std::vector<double>>();
  require(from.at("curves").size() == basis.curves.size(), "wrong number of power curves");
  const std::size_t n = basis.x.size();
  require(n >= 2 && n <= kMostGrid && basis.mean.size() == n, "power curves of the wrong length");
  require_finite(basis.x);
  require_finite(basis.mean);
  for (std::size_t i = 1; i < n; ++i)
    require(basis.x[i] > basis.x[i - 1], "power grid does not ascend");
  for (std::size_t c = 0; c < basis.curves.size(); ++c) {
    basis.curves[c] = from.at("curves")[c].get<std::vector<double>>();
    require(basis.curves[c].size() == n, "power curves of the wrong length");
    require_finite(basis.curves[c]);
  }
}

template <std::size_t N>
std::array<double, N> read_numbers(const json& from) {
  require(from.is_array() && from.size() == N, "a list of numbers has the wrong length");
  std::array<double, N> out{};
  for (std::size_t i = 0; i < N; ++i) out[i] = from[i].get<double>();
  require_finite(out);
  return out;
}

void read_kernel(const json& from, PowerKernel& kernel) {
  kernel.centre = read_numbers<kKernelInputs>(from.at("centre"));
  kernel.scale = read_numbers<kKernelInputs>(from.at("scale"));
  for (const double s : kernel.scale) require(s > 1e-9, "a scale is not positive");
  const json& points = from.at("points");
  const json& weights = from.at("weights");
  require(points.is_array() && weights.is_array() && points.size() == weights.size() &&
              points.size() <= kMostKernel,
          "power kernel: lists of the wrong length");
  for (std::size_t i = 0; i < points.size(); ++i) {
    kernel.points.push_back(read_numbers<kKernelInputs>(points[i]));
    kernel.weights.push_back(read_numbers<kPowerCurves>(weights[i]));
  }
}

}  // namespace

Result<Predictor> parse_model_body(std::string_view body, std::string_view name) {
  const std::size_t rule = body.find(kRule);
  if (rule == std::string_view::npos) return bad(name, "no line '---' behind its header");
  auto fitted = std::make_shared<Fitted>();
  try {
    read_header(json::parse(body.substr(0, rule)), *fitted);
    const json numbers = json::parse(body.substr(rule + kRule.size()));
    fitted->time_prior = read_numbers<kTimePriorSize>(numbers.at("time_prior"));
    read_basis(numbers.at("power_basis"), fitted->power_basis);
    read_kernel(numbers.at("power_kernel"), fitted->power_kernel);
    fitted->time_spread = read_numbers<2>(numbers.at("time_spread"));
    fitted->energy_spread = read_numbers<2>(numbers.at("energy_spread"));
    for (const double s : {fitted->time_spread[0], fitted->time_spread[1], fitted->energy_spread[0],
                           fitted->energy_spread[1]})
      require(s >= 0, "a spread is negative");
    for (std::size_t t = 0; t < kTargetCount; ++t) {
      const std::string key(to_string(static_cast<Target>(t)));
      const auto found = numbers.at("forests").find(key);
      if (found == numbers.at("forests").end()) continue;
      auto forest = Forest::from_xgboost(*found, kFeatureCount);
      if (!forest) return bad(name, fmt::format("{}, {}", key, forest.error().text));
      fitted->forests[t] = std::move(*forest);
      fitted->forest_json[t] = found->dump();
    }
  } catch (const json::exception& error) {
    return bad(name, error.what());
  }
  return Predictor(std::move(fitted));
}

std::string Predictor::to_text() const {
  std::string body = header_of(*fitted_).dump(1);
  body.append(kRule);
  body.append(numbers_of(*fitted_).dump());
  body.append("\n");
  std::string out =
      fmt::format("{}{} crc32={:08x} bytes={}\n", kMagic, kFormat, checksum(body), body.size());
  out.append(body);
  return out;
}

Result<Predictor> Predictor::parse(std::string_view text, std::string_view name) {
  if (text.size() > kMostBytes) return bad(name, "larger than any model");
  if (!text.starts_with(kMagic))
    return bad(name, "not a GPOEO model: it does not begin with 'gpoeo-model'");
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return bad(name, "truncated in its first line");
  const std::string_view first = text.substr(kMagic.size(), end - kMagic.size());
  int format = 0;
  const auto [after, failed] = std::from_chars(first.data(), first.data() + first.size(), format);
  if (failed != std::errc()) return bad(name, "no format number in its first line");
  if (format > kFormat)
    return make_error(ErrorKind::kInvalid,
                      fmt::format("{}: made by a newer GPOEO (format {}, this one reads up to {}); "
                                  "update GPOEO or train one with `gpoeo train`",
                                  name, format, kFormat));
  if (format != kFormat) return bad(name, fmt::format("format {} is not known", format));
  const std::string_view body = text.substr(end + 1);
  const std::string expected = fmt::format(" crc32={:08x} bytes={}", checksum(body), body.size());
  const std::string_view stated(after,
                                static_cast<std::size_t>(first.data() + first.size() - after));
  if (stated != expected) {
    const std::size_t bytes = stated.find("bytes=");
    std::size_t size = 0;
    if (bytes != std::string_view::npos)
      std::from_chars(stated.data() + bytes + 6, stated.data() + stated.size(), size);
    if (size > body.size())
      return bad(name, fmt::format("truncated: {} of {} bytes are there", body.size(), size));
    return bad(name, "damaged: its checksum does not match");
  }
  return parse_model_body(body, name);
}

Result<Predictor> Predictor::load(const std::filesystem::path& path) {
  GPOEO_TRY(const std::string text, read_file(path, kMostBytes));
  return parse(text, path.string());
}

std::string model_file_name(std::string_view device_name) {
  std::string name;
  for (const char c : device_name) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter))
      name.push_back(static_cast<char>(std::tolower(letter)));
    else if (!name.empty() && name.back() != '-')
      name.push_back('-');
  }
  return name + ".gpoeo-model";
}

Result<Predictor> Predictor::load_for(const Device& device, const std::filesystem::path& folder) {
  const std::filesystem::path own = folder / model_file_name(device.name);
  const std::filesystem::path any = folder / model_file_name("any");
  std::error_code ignored;
  const bool has_own = std::filesystem::exists(own, ignored);
  if (!has_own && !std::filesystem::exists(any, ignored))
    return make_error(ErrorKind::kNotFound,
                      fmt::format("no model for {}: neither {} nor {} is there", device.name,
                                  own.string(), any.string()));
  GPOEO_TRY(Predictor predictor, load(has_own ? own : any));
  GPOEO_TRY_STATUS(predictor.check_fits(device));
  return predictor;
}

}  // namespace gpoeo::model
