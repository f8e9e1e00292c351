// SPDX-License-Identifier: Apache-2.0
// An NVML library for tests of the adapter: a shared object with one card whose answers the test
// sets. For behaviour over time use the twin; this is for what a healthy card never does.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gpu/nvml/abi.h"

namespace gpoeo::nvml::testing {

struct FakeNvml {
  // Answers by NVML's name of the call; a call that is not named succeeds.
  std::map<std::string, nvml_abi::Return> answers;
  // The same for one field of nvmlDeviceGetFieldValues.
  std::map<unsigned, nvml_abi::Return> field_answers;
  std::map<unsigned, unsigned> fields_mw = {{nvml_abi::kFieldPowerInstant, 301'000},
                                            {nvml_abi::kFieldPowerAverage, 302'000}};
  std::vector<nvml_abi::Sample> samples;
  unsigned long long energy_mj = 5'000'000;
  unsigned usage_mw = 303'000;
  unsigned enforced_limit_mw = 650'000;
  unsigned sm_mhz = 1980;
  unsigned memory_mhz = 3201;
  nvml_abi::Utilization utilization = {87, 43};
  unsigned celsius = 61;
  unsigned long long reasons = 4;
  int compute_major = 9;
  int compute_minor = 0;
  unsigned mig = 0;
  unsigned processes = 1;
  bool gpm_supported = true;
  std::map<unsigned, double> gpm;  // by metric id

  // What the library saw.
  std::vector<std::string> setter_calls;
  int setter_lookups = 0;  // how often a setter's address was asked for
  bool setters_abort = false;
  int inits = 0;
  int shutdowns = 0;
};

// What the fake exports beside NVML's names, as `fakeNvmlState`.
using FakeNvmlStateFn = FakeNvml*();

}  // namespace gpoeo::nvml::testing
