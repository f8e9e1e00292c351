// SPDX-License-Identifier: Apache-2.0
// SI strong types for module borders. A bare number that carries a unit has it in its name
// (period_ms); everything else that crosses a border is one of these. Vendor units (mW, MHz, mJ)
// live only in adapters.
#pragma once

#include <compare>

namespace gpoeo {

// A double with a unit. Quantities of one unit add and compare; a ratio of two is a plain number.
template <typename Tag>
class Quantity {
 public:
  constexpr Quantity() = default;
  // Not "si_value": <signal.h> defines that as a macro.
  constexpr explicit Quantity(double in_si) : value_(in_si) {}

  constexpr double value() const { return value_; }

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity operator+(Quantity o) const { return Quantity(value_ + o.value_); }
  constexpr Quantity operator-(Quantity o) const { return Quantity(value_ - o.value_); }
  constexpr Quantity operator-() const { return Quantity(-value_); }
  constexpr Quantity operator*(double k) const { return Quantity(value_ * k); }
  constexpr Quantity operator/(double k) const { return Quantity(value_ / k); }
  constexpr double operator/(Quantity o) const { return value_ / o.value_; }
  constexpr Quantity& operator+=(Quantity o) {
    value_ += o.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) {
    value_ -= o.value_;
    return *this;
  }

 private:
  double value_ = 0.0;
};

template <typename Tag>
constexpr Quantity<Tag> operator*(double k, Quantity<Tag> q) {
  return q * k;
}

using Seconds = Quantity<struct SecondsTag>;
using Hertz = Quantity<struct HertzTag>;
using Watts = Quantity<struct WattsTag>;
using Joules = Quantity<struct JoulesTag>;
using Celsius = Quantity<struct CelsiusTag>;

constexpr Joules operator*(Watts p, Seconds t) { return Joules(p.value() * t.value()); }
constexpr Joules operator*(Seconds t, Watts p) { return p * t; }
constexpr Watts operator/(Joules e, Seconds t) { return Watts(e.value() / t.value()); }

// GPU clocks are whole MHz everywhere in the field; these two keep that readable.
constexpr Hertz megahertz(double mhz) { return Hertz(mhz * 1e6); }
constexpr double to_mhz(Hertz f) { return f.value() / 1e6; }

}  // namespace gpoeo
