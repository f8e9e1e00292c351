// SPDX-License-Identifier: Apache-2.0
// Policies that search nothing: the driver's defaults, one clock or one
// power limit throughout.
#pragma once

#include "policy/policy.h"

namespace gpoeo::policy {

// Measures, changes nothing.
class DefaultClocks final : public Policy {
 public:
  std::string_view name() const override { return "default"; }
  Decision decide(const Problem& problem, std::span<const Observation> observations) const override;
};

// Measures a baseline, then holds the supported clock nearest to the one asked for, whatever it
// costs in time: the user asked for it.
class StaticClock final : public Policy {
 public:
  explicit StaticClock(Hertz sm) : sm_(sm) {}
  std::string_view name() const override { return "static"; }
  Decision decide(const Problem& problem, std::span<const Observation> observations) const override;

 private:
  Hertz sm_;
};

// Measures a baseline, then holds the power limit asked for, within what the card takes.
class StaticPowerLimit final : public Policy {
 public:
  explicit StaticPowerLimit(Watts limit) : limit_(limit) {}
  std::string_view name() const override { return "power-limit"; }
  Decision decide(const Problem& problem, std::span<const Observation> observations) const override;

 private:
  Watts limit_;
};

}  // namespace gpoeo::policy
