// SPDX-License-Identifier: Apache-2.0
#include "twin/segment_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/text.h"

namespace gpoeo::twin {
namespace {

std::size_t round_up(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

std::unexpected<Error> refused(const std::filesystem::path& path, std::string_view why) {
  return make_error(ErrorKind::kInvalid,
                    fmt::format("{} is not a simulated GPU that this program can use: {}; make a "
                                "new one (gpoeo run --twin) or remove it",
                                path.string(), why));
}

Status check_header(const SegmentHeader& header, std::size_t file_bytes,
                    const std::filesystem::path& path) {
  if (header.magic != kSegmentMagic) return refused(path, "it is some other file");
  if (header.version != kSegmentVersion)
    return refused(path, fmt::format("its layout has version {}, ours has {}", header.version,
                                     kSegmentVersion));
  // 16: kMaxCards of segment.h.
  const bool sizes =
      header.header_bytes == segment_header_bytes() && header.card_bytes == segment_card_bytes() &&
      header.card_count >= 1 && header.card_count <= 16 && header.file_bytes == file_bytes &&
      file_bytes == segment_header_bytes() + header.card_count * segment_card_bytes();
  if (!sizes) return refused(path, "its sizes do not fit this build's");
  if (!(header.speed > 0) || header.name.back() != '\0')
    return refused(path, "its header is damaged");
  return {};
}

}  // namespace

std::size_t segment_header_bytes() { return round_up(sizeof(SegmentHeader)); }
std::size_t segment_card_bytes() { return round_up(sizeof(SegmentCard)); }

Result<SegmentFile> SegmentFile::create(const std::filesystem::path& path, unsigned cards) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  Fd file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file) return errno_error(fmt::format("cannot create a file in {}", folder.string()), errno);
  const std::size_t bytes = segment_header_bytes() + cards * segment_card_bytes();
  // Sparse on purpose: jobs' tables take memory only when they are written.
  if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0 || fchmod(file.get(), 0600) != 0)
    return errno_error(fmt::format("cannot size {}", path.string()), errno);
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (base == MAP_FAILED) return errno_error(fmt::format("cannot map {}", path.string()), errno);
  if (flock(file.get(), LOCK_SH) != 0) {
    const int err = errno;
    munmap(base, bytes);
    return errno_error(fmt::format("cannot lock {}", path.string()), err);
  }
  return SegmentFile(std::move(file), base, bytes, path);
}

Status SegmentFile::publish() {
  const std::string open_file = fmt::format("/proc/self/fd/{}", file_.get());
  if (linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) == 0)
    return {};
  if (errno == EEXIST)
    return make_error(ErrorKind::kBusy,
                      fmt::format("{} is there already; use another name, or remove it with "
                                  "'gpoeo twin remove' when nobody needs it",
                                  path_.string()));
  return errno_error(fmt::format("cannot create {}", path_.string()), errno);
}

Result<SegmentFile> SegmentFile::open(const std::filesystem::path& path) {
  Fd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return errno_error(fmt::format("cannot open simulated GPU {}", path.string()), errno);
  struct stat info {};
  if (fstat(file.get(), &info) != 0)
    return errno_error(fmt::format("cannot stat {}", path.string()), errno);
  if (!S_ISREG(info.st_mode)) return refused(path, "it is not a regular file");
  if (info.st_uid != geteuid() && geteuid() != 0)
    return make_error(ErrorKind::kNoPermission,
                      fmt::format("{} belongs to another user; make your own", path.string()));
  if ((info.st_mode & 0077) != 0)
    return make_error(
        ErrorKind::kNoPermission,
        fmt::format("others may read or write {}; run chmod 600 on it", path.string()));
  const auto bytes = static_cast<std::size_t>(info.st_size);
  if (bytes < segment_header_bytes()) return refused(path, "it is too short");
  // Somebody who looks whether it is in use holds it for a moment only, so waiting is right.
  int locked = 0;
  while ((locked = flock(file.get(), LOCK_SH)) != 0 && errno == EINTR) {
  }
  if (locked != 0 || fstat(file.get(), &info) != 0 || info.st_nlink == 0)
    return make_error(ErrorKind::kNotFound, fmt::format("{} was just removed", path.string()));
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (base == MAP_FAILED) return errno_error(fmt::format("cannot map {}", path.string()), errno);
  SegmentFile mapped(std::move(file), base, bytes, path);
  GPOEO_TRY_STATUS(check_header(mapped.header(), bytes, path));
  return mapped;
}

SegmentFile::SegmentFile(SegmentFile&& other) noexcept
    : file_(std::move(other.file_)),
      base_(std::exchange(other.base_, nullptr)),
      bytes_(other.bytes_),
      path_(std::move(other.path_)) {}

SegmentFile::~SegmentFile() {
  if (base_) munmap(base_, bytes_);
}

SegmentCard& SegmentFile::card(unsigned index) const {
  return *reinterpret_cast<SegmentCard*>(static_cast<unsigned char*>(base_) +
                                         segment_header_bytes() + index * segment_card_bytes());
}

Result<bool> segment_in_use(const std::filesystem::path& path) {
  const Fd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return errno_error(fmt::format("cannot open simulated GPU {}", path.string()), errno);
  return flock(file.get(), LOCK_EX | LOCK_NB) != 0;
}

Status initialize_mutex(SegmentCard& card) {
  pthread_mutexattr_t attributes;
  if (pthread_mutexattr_init(&attributes) != 0)
    return make_error(ErrorKind::kIo, "cannot make a mutex for a simulated GPU");
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  const int robust = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  const int made = pthread_mutex_init(&card.mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
  if (robust != 0 || made != 0)
    return make_error(ErrorKind::kNotSupported,
                      "this system has no robust mutexes between processes, which a shared "
                      "simulated GPU needs");
  return {};
}

Status lock_card(SegmentCard& card) {
  const int error = pthread_mutex_lock(&card.mutex);
  if (error == 0) return {};
  if (error == EOWNERDEAD) {
    pthread_mutex_consistent(&card.mutex);
    return {};
  }
  return errno_error("cannot lock the simulated GPU", error);
}

void unlock_card(SegmentCard& card) { pthread_mutex_unlock(&card.mutex); }

std::uint64_t process_start(std::int64_t pid) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%lld/stat", static_cast<long long>(pid));
  const Fd file(::open(path, O_RDONLY | O_CLOEXEC));
  char text[1024];
  const ssize_t length = file ? read(file.get(), text, sizeof text) : 0;
  if (length <= 0) return 0;
  // "PID (NAME) STATE ...": the name may hold anything, so count fields from its last ')'.
  std::string_view rest(text, static_cast<std::size_t>(length));
  const auto name_end = rest.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= rest.size()) return 0;
  const auto fields = split(rest.substr(name_end + 2), ' ');
  constexpr std::size_t kState = 0, kStartTime = 19;  // fields 3 and 22
  if (fields.size() <= kStartTime || fields[kState] == "Z" || fields[kState] == "X") return 0;
  const auto ticks = parse_int(fields[kStartTime]);
  return ticks ? static_cast<std::uint64_t>(*ticks) : 0;
}

}  // namespace gpoeo::twin
