// SPDX-License-Identifier: Apache-2.0
// Compiled only where CUPTI's headers are: our own layouts of pm_abi.h are those of the toolkit.
#include <cuda.h>
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>

#include "cupti/pm_abi.h"

namespace gpoeo::cupti::pm {
namespace {

#define GPOEO_SAME(ours, theirs) static_assert(sizeof(ours) == theirs##_STRUCT_SIZE)

GPOEO_SAME(Head, CUpti_Profiler_Initialize_Params);
GPOEO_SAME(ChipName, CUpti_Device_GetChipName_Params);
GPOEO_SAME(Availability, CUpti_PmSampling_GetCounterAvailability_Params);
GPOEO_SAME(HostOpen, CUpti_Profiler_Host_Initialize_Params);
GPOEO_SAME(HostClose, CUpti_Profiler_Host_Deinitialize_Params);
GPOEO_SAME(HostMetrics, CUpti_Profiler_Host_ConfigAddMetrics_Params);
GPOEO_SAME(HostConfigSize, CUpti_Profiler_Host_GetConfigImageSize_Params);
GPOEO_SAME(HostConfig, CUpti_Profiler_Host_GetConfigImage_Params);
GPOEO_SAME(HostPasses, CUpti_Profiler_Host_GetNumOfPasses_Params);
GPOEO_SAME(HostEvaluate, CUpti_Profiler_Host_EvaluateToGpuValues_Params);
GPOEO_SAME(Enable, CUpti_PmSampling_Enable_Params);
GPOEO_SAME(OfSampler, CUpti_PmSampling_Start_Params);
GPOEO_SAME(DataSize, CUpti_PmSampling_GetCounterDataSize_Params);
GPOEO_SAME(DataOpen, CUpti_PmSampling_CounterDataImage_Initialize_Params);
GPOEO_SAME(DataInfo, CUpti_PmSampling_GetCounterDataInfo_Params);
GPOEO_SAME(SampleInfo, CUpti_PmSampling_CounterData_GetSampleInfo_Params);
static_assert(kConfigBytes == CUpti_PmSampling_SetConfig_Params_STRUCT_SIZE);
static_assert(kDecodeBytes == CUpti_PmSampling_DecodeData_Params_STRUCT_SIZE);
static_assert(offsetof(Config, interval) ==
              offsetof(CUpti_PmSampling_SetConfig_Params, samplingInterval));
static_assert(offsetof(HostEvaluate, values) ==
              offsetof(CUpti_Profiler_Host_EvaluateToGpuValues_Params, pMetricValues));
static_assert(offsetof(DataInfo, completed) ==
              offsetof(CUpti_PmSampling_GetCounterDataInfo_Params, numCompletedSamples));
static_assert(kTriggerSysClock == CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL);
static_assert(kTriggerTime == CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL);
static_assert(kKeepOldest == CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST);
static_assert(kHostPmSampling == CUPTI_PROFILER_TYPE_PM_SAMPLING);
static_assert(kInvalidMetricName == CUPTI_ERROR_INVALID_METRIC_NAME);
static_assert(kHardwareBusy == CUPTI_ERROR_HARDWARE_BUSY);
static_assert(kNotSupported == CUPTI_ERROR_NOT_SUPPORTED);
static_assert(kInsufficientPrivileges == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
static_assert(kVirtualInsufficientPrivileges ==
              CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES);
static_assert(kMigDevice == CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED);
static_assert(kInvalidChipName == CUPTI_ERROR_INVALID_CHIP_NAME);

#undef GPOEO_SAME

}  // namespace
}  // namespace gpoeo::cupti::pm
