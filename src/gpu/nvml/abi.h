// SPDX-License-Identifier: Apache-2.0
// The part of NVML's binary interface that this project calls (src/gpu/nvml) or answers
// (src/twin/nvml): layouts, numbers and call shapes, declared by us under our own names. Facts were
// checked against driver 580 (NVML 13.0) on x86-64 and AArch64 Linux; the sizes asserted below are
// the ones that travel inside NVML's own version words. Vendor units stay on this side: MHz, mW,
// mJ, percent, microseconds.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpoeo::nvml_abi {

enum Return : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kAlreadyInitialized = 5,
  kNotFound = 6,
  kInsufficientSize = 7,
  kInsufficientPower = 8,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kIrqIssue = 11,
  kLibraryNotFound = 12,
  kFunctionNotFound = 13,
  kCorruptedInforom = 14,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kOperatingSystem = 17,
  kLibRmVersionMismatch = 18,
  kInUse = 19,
  kMemory = 20,
  kNoData = 21,
  kVgpuEccNotSupported = 22,
  kInsufficientResources = 23,
  kFreqNotSupported = 24,
  kArgumentVersionMismatch = 25,
  kDeprecated = 26,
  kNotReady = 27,
  kGpuNotFound = 28,
  kInvalidState = 29,
  kResetTypeNotSupported = 30,
  kUnknown = 999,
};

// Opaque to every client.
struct DeviceRecord;
using DeviceHandle = DeviceRecord*;
struct GpmSampleRecord;
using GpmSample = GpmSampleRecord*;

enum ClockType : unsigned {
  kClockGraphics = 0,
  kClockSm = 1,
  kClockMemory = 2,
  kClockVideo = 3,
  kClockTypeCount = 4
};
enum ClockId : unsigned {
  kClockCurrent = 0,
  kClockAppTarget = 1,
  kClockAppDefault = 2,
  kClockCustomerBoostMax = 3,
  kClockIdCount = 4,
};
enum SamplingType : unsigned {
  kSamplesTotalPower = 0,
  kSamplesGpuUtilization = 1,
  kSamplesMemoryUtilization = 2,
  kSamplesEncoder = 3,
  kSamplesDecoder = 4,
  kSamplesProcessorClock = 5,
  kSamplesMemoryClock = 6,
  kSamplesModulePower = 7,
  kSamplesJpeg = 8,
  kSamplesOfa = 9,
};
enum ValueType : unsigned {
  kValueDouble = 0,
  kValueUnsigned = 1,
  kValueUnsignedLong = 2,
  kValueUnsignedLongLong = 3,
  kValueSignedLongLong = 4,
  kValueSigned = 5,
};
enum TemperatureSensor : unsigned { kTemperatureGpu = 0 };
enum TemperatureThreshold : unsigned {
  kThresholdShutdown = 0,
  kThresholdSlowdown = 1,
  kThresholdMemoryMax = 2,
  kThresholdGpuMax = 3,
  kThresholdCount = 8,
};

// Ids for nvmlDeviceGetFieldValues.
enum Field : unsigned {
  kFieldEccCurrent = 1,
  kFieldEccPending = 2,
  kFieldMemoryTemperature = 82,
  kFieldTotalEnergy = 83,
  kFieldPowerAverage = 185,
  kFieldPowerInstant = 186,
  kFieldPowerMinLimit = 187,
  kFieldPowerMaxLimit = 188,
  kFieldPowerDefaultLimit = 189,
  kFieldPowerCurrentLimit = 190,
  kFieldEnergy = 191,
  kFieldPowerRequestedLimit = 192,
};

// Metric ids of GPM (activity counters from outside the process, Hopper and newer).
enum GpmMetricId : unsigned {
  kGpmGraphics = 1,
  kGpmSm = 2,
  kGpmSmOccupancy = 3,
  kGpmInteger = 4,
  kGpmAnyTensor = 5,
  kGpmDramBandwidth = 10,
  kGpmFp64 = 11,
  kGpmFp32 = 12,
  kGpmFp16 = 13,
  kGpmPcieTx = 20,  // MiB/s
  kGpmPcieRx = 21,
};

constexpr unsigned kArchitectureAmpere = 7;
constexpr std::uint64_t kNotAvailable64 = ~std::uint64_t{0};
constexpr unsigned kNotAvailable32 = ~0U;

union Value {
  double as_double;
  int as_int;
  unsigned as_unsigned;
  unsigned long as_unsigned_long;
  unsigned long long as_unsigned_long_long;
  long long as_long_long;
};

struct Sample {
  unsigned long long time_us;  // CPU time since the Unix epoch
  Value value;
};
static_assert(sizeof(Sample) == 16);

struct FieldValue {
  unsigned field;
  unsigned scope;
  long long time_us;
  long long latency_us;
  ValueType type;
  Return status;
  Value value;
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, value) == 32);

struct Utilization {
  unsigned gpu;  // percent
  unsigned memory;
};

struct Memory {
  unsigned long long total, free, used;
};

struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
static_assert(sizeof(MemoryV2) == 40);

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device;
  unsigned device_id, subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

struct PciInfoExt {
  unsigned version;
  unsigned domain, bus, device;
  unsigned device_id, subsystem_id;
  unsigned base_class, sub_class;
  char bus_id[32];
};
static_assert(sizeof(PciInfoExt) == 64);

struct ProcessInfoV1 {
  unsigned pid;
  unsigned long long used_memory;
};
static_assert(sizeof(ProcessInfoV1) == 16);

struct ProcessInfo {  // _v2 and _v3 of the calls
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

struct ProcessSample {
  unsigned pid;
  unsigned long long time_us;
  unsigned sm, memory, encoder, decoder;  // percent
};
static_assert(sizeof(ProcessSample) == 32);

struct UuidRequest {
  unsigned version;
  unsigned type;  // 1: text, 2: 16 bytes
  union {
    char text[41];
    unsigned char bytes[16];
  };
};
static_assert(sizeof(UuidRequest) == 52);

struct TemperatureReading {
  unsigned version;
  unsigned sensor;
  int celsius;
};

struct MarginTemperature {
  unsigned version;
  int celsius;
};

struct PowerValue {
  unsigned version;
  unsigned char scope;
  unsigned milliwatts;
};
static_assert(sizeof(PowerValue) == 12);

// nvmlDeviceGetPerformanceModes and nvmlDeviceGetCurrentClockFreqs.
struct ModeText {
  unsigned version;
  char text[2048];
};
static_assert(sizeof(ModeText) == 2052);

struct GpmMetric {
  unsigned id;
  Return status;
  double value;
  const char* short_name;
  const char* long_name;
  const char* unit;
};
static_assert(sizeof(GpmMetric) == 40);

constexpr unsigned kGpmMaxMetrics = 210;  // room in a driver 580 request; older ones have less
struct GpmRequest {
  unsigned version;  // 1
  unsigned count;
  GpmSample earlier, later;
  GpmMetric metrics[kGpmMaxMetrics];
};
static_assert(sizeof(GpmRequest) == 24 + 40 * kGpmMaxMetrics);

struct GpmSupport {
  unsigned version;  // 1
  unsigned supported;
};

// The version word of a versioned structure: its size, and its number in the top byte.
template <typename T>
constexpr unsigned version_word(unsigned number) {
  return static_cast<unsigned>(sizeof(T)) | number << 24;
}

// Extension of our own libnvidia-ml.so.1 (src/twin/nvml), absent from the vendor's.
// gpoeoTwinVersion: the program's version; its presence says that the cards are simulated.
using TwinVersionFn = const char*();
// The lock in force: kSuccess with the bounds, kNotFound for none. `type` is graphics/SM or memory.
using TwinLockedClocksFn = Return(DeviceHandle device, ClockType type, unsigned* min_mhz,
                                  unsigned* max_mhz);
// The twin's time now, nanoseconds since the Unix epoch.
using TwinNowFn = Return(long long* now_ns);

}  // namespace gpoeo::nvml_abi
