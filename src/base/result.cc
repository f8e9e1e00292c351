// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace gpoeo {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalid:
      return "invalid";
    case ErrorKind::kNotFound:
      return "not found";
    case ErrorKind::kNotSupported:
      return "not supported";
    case ErrorKind::kNoPermission:
      return "no permission";
    case ErrorKind::kBusy:
      return "busy";
    case ErrorKind::kDeviceLost:
      return "device lost";
    case ErrorKind::kTimeout:
      return "timeout";
    case ErrorKind::kIo:
      return "i/o error";
  }
  return "unknown";
}

std::unexpected<Error> errno_error(std::string_view what, int err) {
  ErrorKind kind = ErrorKind::kIo;
  if (err == EACCES || err == EPERM) kind = ErrorKind::kNoPermission;
  if (err == ENOENT) kind = ErrorKind::kNotFound;
  return make_error(kind, std::string(what) + ": " + std::generic_category().message(err));
}

std::unexpected<Error> with_context(std::string_view context, const Error& error) {
  return make_error(error.kind, std::string(context) + ": " + error.text);
}

void check_failed(const char* condition, std::source_location where) {
  std::fprintf(stderr, "gpoeo: BUG at %s:%u: %s does not hold\n", where.file_name(),
               static_cast<unsigned>(where.line()), condition);
  std::abort();
}

}  // namespace gpoeo
