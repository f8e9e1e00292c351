// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes as a progress ring. The first byte says how often the file changes under
// the open reader; then follow 16 bytes for each change (offset, word), then the file.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "wire/ring_reader.h"

namespace {

void write_all(const std::string& path, const std::uint8_t* data, std::size_t size) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (::write(file, data, size) != static_cast<ssize_t>(size)) ::abort();
  ::close(file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpoeo::wire;
  if (size < 1 || size > (std::size_t{1} << 17)) return 0;
  static const std::string path = "/dev/shm/gpoeo-ring-fuzz-" + std::to_string(::getpid());
  const std::size_t changes = data[0] % 8;
  if (size < 1 + 16 * changes) return 0;
  const std::uint8_t* file = data + 1 + 16 * changes;
  std::vector<std::uint8_t> bytes(file, data + size);
  // Most inputs should get past the header.
  RingHeader header;
  if (bytes.size() >= sizeof header) {
    std::memcpy(&header, bytes.data(), sizeof header);
    header.magic = kRingMagic;
    header.version = kRingVersion;
    header.record_bytes = sizeof(RingRecord);
    header.capacity = 1U << (header.capacity % 8);
    std::memcpy(bytes.data(), &header, sizeof header);
    if (data[0] >= 128) bytes.resize(std::max(bytes.size(), ring_file_bytes(header.capacity)));
  }
  write_all(path, bytes.data(), bytes.size());
  auto reader = RingReader::open(path);
  if (reader) {
    std::vector<RingRecord> records;
    for (std::size_t i = 0; i <= changes; ++i) {
      if (!reader->drain(records)) break;
      (void)reader->request_counters(i + 1, 1000);
      (void)reader->counters();
      (void)reader->stop_counters(i + 1);
      if (records.size() > 8 * 128) ::abort();  // at most a ring's worth a call
      if (i == changes) break;
      std::uint64_t change[2];
      std::memcpy(change, data + 1 + 16 * i, sizeof change);
      if (change[0] % 16 == 15) {
        if (::truncate(path.c_str(), static_cast<off_t>(change[0] % 4096)) != 0) ::abort();
        continue;
      }
      const int raw = ::open(path.c_str(), O_WRONLY);
      if (::pwrite(raw, &change[1], 8, static_cast<off_t>(change[0] % 2048 & ~7ULL)) != 8) {
        ::abort();
      }
      ::close(raw);
    }
  }
  ::unlink(path.c_str());
  return 0;
}
