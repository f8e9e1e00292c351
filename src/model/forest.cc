// SPDX-License-Identifier: Apache-2.0
#include "model/forest.h"

#include <fmt/format.h>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace gpoeo::model {
namespace {

constexpr std::size_t kMostTrees = 2000;
constexpr std::size_t kMostNodes = 4096;  // of one tree

std::unexpected<Error> bad(std::size_t tree, std::string_view what) {
  return make_error(ErrorKind::kInvalid, fmt::format("tree {}: {}", tree, what));
}

}  // namespace

Result<Forest> Forest::from_xgboost(const nlohmann::json& booster, std::size_t features) {
  Forest forest;
  try {
    const auto& trees = booster.at("learner").at("gradient_booster").at("model").at("trees");
    if (!trees.is_array() || trees.size() > kMostTrees)
      return make_error(ErrorKind::kInvalid, "trees: not a list, or too many");
    for (std::size_t t = 0; t < trees.size(); ++t) {
      const auto left = trees[t].at("left_children").get<std::vector<std::int32_t>>();
      const auto right = trees[t].at("right_children").get<std::vector<std::int32_t>>();
      const auto split = trees[t].at("split_indices").get<std::vector<std::int32_t>>();
      const auto value = trees[t].at("split_conditions").get<std::vector<float>>();
      const auto missing = trees[t].at("default_left").get<std::vector<int>>();
      const std::size_t n = left.size();
      if (n == 0 || n > kMostNodes) return bad(t, "no nodes, or too many");
      if (right.size() != n || split.size() != n || value.size() != n || missing.size() != n)
        return bad(t, "its lists differ in length");
      const auto base = static_cast<std::int32_t>(forest.nodes_.size());
      forest.roots_.push_back(base);
      for (std::size_t i = 0; i < n; ++i) {
        if (!std::isfinite(value[i])) return bad(t, "a number is not finite");
        const bool leaf = left[i] == -1;
        const auto child = [&](std::int32_t c) {
          return c > static_cast<std::int32_t>(i) && c < static_cast<std::int32_t>(n);
        };
        if (!leaf && (!child(left[i]) || !child(right[i])))
          return bad(t, "a child does not come after its parent");
        if (!leaf && (split[i] < 0 || static_cast<std::size_t>(split[i]) >= features))
          return bad(t, "splits on a feature that does not exist");
        forest.nodes_.push_back({value[i], split[i], leaf ? -1 : base + left[i],
                                 leaf ? -1 : base + right[i], missing[i] != 0});
      }
    }
  } catch (const nlohmann::json::exception& error) {
    return make_error(ErrorKind::kInvalid, fmt::format("trees: {}", error.what()));
  }
  return forest;
}

nlohmann::json Forest::essentials(const nlohmann::json& booster) {
  nlohmann::json trees = nlohmann::json::array();
  for (const auto& tree : booster.at("learner").at("gradient_booster").at("model").at("trees")) {
    nlohmann::json kept;
    for (const char* field :
         {"left_children", "right_children", "split_indices", "split_conditions", "default_left"})
      kept[field] = tree.at(field);
    trees.push_back(std::move(kept));
  }
  nlohmann::json out;
  out["learner"]["gradient_booster"]["model"]["trees"] = std::move(trees);
  return out;
}

float Forest::predict(std::span<const float> features) const {
  float sum = 0;
  for (std::int32_t i : roots_) {
    const Node* node = &nodes_[static_cast<std::size_t>(i)];
    while (node->left >= 0) {
      const float x = features[static_cast<std::size_t>(node->feature)];
      const bool go_left = std::isnan(x) ? node->missing_left : x < node->value;
      node = &nodes_[static_cast<std::size_t>(go_left ? node->left : node->right)];
    }
    sum += node->value;
  }
  return sum;
}

}  // namespace gpoeo::model
