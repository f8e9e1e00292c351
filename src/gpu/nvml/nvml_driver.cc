// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml/nvml_driver.h"

#include <fmt/format.h>

#include <utility>

#include "gpu/nvml/nvml_device.h"

namespace gpoeo::nvml {
namespace {

class NvmlDriver final : public gpu::Driver {
 public:
  NvmlDriver(std::shared_ptr<Session> session, std::string version, unsigned count)
      : session_(std::move(session)), version_(std::move(version)), count_(count) {}

  std::string version() const override { return version_; }
  unsigned device_count() const override { return count_; }

  Result<std::unique_ptr<gpu::Device>> open(unsigned index, gpu::Access access) override {
    if (index >= count_) {
      return make_error(ErrorKind::kNotFound,
                        fmt::format("no GPU {}: {} shows {} (0 to {}); see 'gpoeo doctor'", index,
                                    session_->library().path(), count_, count_ - 1));
    }
    GPOEO_TRY(auto device, NvmlDevice::open(session_, index, access));
    return std::unique_ptr<gpu::Device>(std::move(device));
  }

 private:
  std::shared_ptr<Session> session_;
  std::string version_;
  unsigned count_;
};

}  // namespace

Result<std::unique_ptr<gpu::Driver>> open_nvml(const NvmlOptions& options, const Clock& clock) {
  GPOEO_TRY(Library library, Library::open(options.library));
  GPOEO_TRY(std::shared_ptr<Session> session, Session::start(std::move(library), clock));
  const Library& lib = session->library();

  char version[96] = "";
  if (lib.get().driver_version == nullptr ||
      lib.get().driver_version(version, sizeof version) != abi::kSuccess) {
    version[0] = '\0';  // only a label: its absence must not stop anything
  }
  version[sizeof version - 1] = '\0';
  unsigned count = 0;
  GPOEO_TRY_STATUS(lib.check(lib.get().count(&count), lib.path(), "nvmlDeviceGetCount"));
  return std::unique_ptr<gpu::Driver>(new NvmlDriver(std::move(session), version, count));
}

}  // namespace gpoeo::nvml
